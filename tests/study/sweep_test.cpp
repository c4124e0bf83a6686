// A sweep is the accounts of its points: the same figures, in the stated order, and a reason where there is
// none.
#include "core/study/sweep.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "core/study/report_json.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::kNoError;
using test::message_of;

/// A request out of what --key value would say.
SweepRequest request(std::initializer_list<std::pair<const char*, const char*>> given) {
  SweepRequest made;
  for (const auto& [name, text] : given) {
    const auto p = sweep_parameter_named(name);
    REQUIRE(p);
    const auto values = parse_sweep_values(sweep_parameters()[*p], text);
    REQUIRE(message_of(values) == kNoError);
    made.values[*p] = *values;
  }
  return made;
}

SweepReport sweep(std::initializer_list<std::pair<const char*, const char*>> given) {
  auto report = make_sweep(request(given));
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

std::string text_at(const SweepReport& report, std::size_t point, const char* name) {
  const SweepValue* value = report.value_at(point, *sweep_parameter_named(name));
  return value == nullptr ? "" : value_text(*value);
}

FigureValue figure(const SweepPoint& point, const char* name) {
  return point.figures[sweep_figure_named(name).value()];
}

TEST_CASE("points are the Cartesian product, the last parameter fastest") {
  const SweepReport report = sweep({{"seq", "64,32"}, {"algo", "flash1,flash2"}, {"sram", "32KiB,64KiB"}});
  REQUIRE(report.points.size() == 8);
  REQUIRE(report.swept.size() == 3);
  std::string order;
  for (std::size_t at = 0; at < report.points.size(); ++at) {
    order += text_at(report, at, "algo") + " " + text_at(report, at, "seq") + " " +
             text_at(report, at, "sram") + "\n";
  }
  CHECK(order ==
        "flash1 64 32768\nflash1 64 65536\nflash1 32 32768\nflash1 32 65536\n"
        "flash2 64 32768\nflash2 64 65536\nflash2 32 32768\nflash2 32 65536\n");
}

TEST_CASE("without options a sweep is the one point of the bare account") {
  const SweepReport report = sweep({});
  REQUIRE(report.points.size() == 1);
  CHECK(report.swept.empty());
  const auto account = make_account({});
  CHECK(figure(report.points[0], "hbm_total_bytes") == FigureValue(account->hbm_bytes().value()));
  CHECK(text_at(report, 0, "dtype") == "fp16");
  CHECK(text_at(report, 0, "kv-seq").empty());
}

TEST_CASE("every figure of every point is the account's") {
  const SweepReport report = sweep({{"algo", "standard,eager,flash1,flash2"},
                                    {"seq", "1,100"},
                                    {"kv-seq", "64,300"},
                                    {"dtype", "bf16,fp64"},
                                    {"causal", "yes,no"},
                                    {"gpu", "l4,h100"}});
  REQUIRE(report.points.size() == 4 * 2 * 2 * 2 * 2 * 2);
  for (std::size_t at = 0; at < report.points.size(); ++at) {
    AccountRequest one;
    for (std::size_t p = 0; p < sweep_parameters().size(); ++p) {
      if (const auto* value = report.value_at(at, p)) sweep_parameters()[p].put(one, *value);
    }
    const auto account = make_account(one);
    REQUIRE(message_of(account) == kNoError);
    const SweepPoint& point = report.points[at];
    REQUIRE_FALSE(point.error);
    CHECK(tiling_text(*point.tiling) == tiling_text(account->method.tiling));
    for (std::size_t f = 0; f < sweep_figures().size(); ++f) {
      CHECK(point.figures[f] == sweep_figures()[f].of(*account));
    }
    CHECK(account->predicted_equals_counted() == std::optional(true));
  }
}

TEST_CASE("a point that can't be has its reason, and the sweep goes on") {
  const SweepReport report = sweep({{"heads", "3,4"}, {"kv-heads", "2"}, {"tile-q", "64,1000"}});
  REQUIRE(report.points.size() == 4);
  CHECK(report.errors() == 3);
  CHECK(report.points[0].error->message == "3 query heads can't share 2 key/value heads evenly");
  CHECK_FALSE(report.points[2].error);
  CHECK(report.points[3].error->message.starts_with("tiles 1000×"));
  const SweepReport large = sweep({{"seq", "8,1099511627776"}});
  CHECK_FALSE(large.points[0].error);
  CHECK(large.points[1].error->message.starts_with("a count of flash2 leaves 64 bits"));
}

TEST_CASE("too many points are an error with their number") {
  const auto error = make_sweep(request({{"seq", "1:1000:1"}, {"batch", "1:101:1"}}));
  CHECK(message_of(error) == "the sweep has 101 000 points, and at most 100 000 are allowed");
  CHECK(message_of(make_sweep(request({{"seq", "1:90000:1"},
                                       {"batch", "1:90000:1"},
                                       {"heads", "1:90000:1"},
                                       {"head-dim", "1:90000:1"}}))) ==
        "the sweep has more than 2⁶³ points, and at most 100 000 are allowed");
}

TEST_CASE("names that nobody knows are told with what is known") {
  CHECK(message_of(parse_sweep_values(sweep_parameters()[*sweep_parameter_named("gpu")], "a100,h300")) ==
        "unknown GPU 'h300'");
  CHECK(message_of(parse_sweep_values(sweep_parameters()[*sweep_parameter_named("causal")], "maybe")) ==
        "--causal must be yes or no, not 'maybe'");
  CHECK(message_of(sweep_figure_named("hbm_bytes")) == "unknown figure 'hbm_bytes'");
}

TEST_CASE("a sweep's JSON repeats it") {
  const SweepReport report = sweep({{"seq", "8:64:x2"}, {"algo", "flash1,standard"}, {"causal", "no"}});
  const std::string text = json_text(sweep_json(report));
  const auto again = read_sweep_request(text, "'a.json'");
  REQUIRE(message_of(again) == kNoError);
  CHECK(json_text(sweep_json(*make_sweep(*again))) == text);
}

TEST_CASE("an input that is wrong is refused with its path") {
  const auto wrong = [](const char* input) {
    return message_of(read_sweep_request(std::string("{\"input\": ") + input + "}", "'a.json'"));
  };
  CHECK(wrong(R"({"seq": [8, 0]})") ==
        "'a.json': input.seq[1] must be a whole number from 1 to 1099511627776, not 0");
  CHECK(wrong(R"({"seq": []})") == "'a.json': input.seq must not be empty");
  CHECK(wrong(R"({"seq": "8"})") == "'a.json': input.seq must be a whole number, not \"8\"");
  CHECK(wrong(R"({"sram_bytes": [-1]})") == "'a.json': input.sram_bytes[0] must be at least 1, not -1");
  CHECK(wrong(R"({"sram_bytes": 18446744073709551615})")
            .starts_with("'a.json': input.sram_bytes must be a whole number, not "));
  CHECK(wrong(R"({"causal": [1]})") == "'a.json': input.causal[0] must be true or false, not 1");
  CHECK(wrong(R"({"algorithm": ["flsh"]})") == "'a.json': input.algorithm[0]: unknown algorithm 'flsh'");
  CHECK(wrong(R"({"gpu": [3]})") == "'a.json': input.gpu[0] must be a text of one line, not 3");
  CHECK(wrong(R"({"sequence": [8]})").starts_with("'a.json': unknown key input.sequence"));
}

TEST_CASE("a thousand points take no time, and progress ends at the last") {
  const auto start = std::chrono::steady_clock::now();
  double done = 0;
  const auto report = make_sweep(request({{"seq", "1:500:1"}, {"algo", "standard,flash2"}}),
                                 [&](double share) { done = share; });
  REQUIRE(report.ok());
  CHECK(report->points.size() == 1000);
  CHECK(done == 1.0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
}  // namespace flashsim
