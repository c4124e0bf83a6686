// What was measured of the ladder on an H200 beside the model as it is now:
// docs/measurements/h200_ladder_*.json. The tables in docs/measured.md are made here, and compared; with
// FLASHSIM_UPDATE_DOCS=1 they are written.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/quantity_text.hpp"
#include "core/problem/kernel.hpp"
#include "core/study/kernel_account.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

constexpr const char* kShapeKeys[] = {"type", "batch", "heads", "kv_heads", "seq", "head_dim", "causal"};
const std::string kMeasurements = FLASHSIM_SOURCE_DIR "/docs/measurements/";

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

json measured(const std::string& file) { return json::parse(text_of(kMeasurements + file)); }

/// A figure as the model has it now, and as it was measured.
struct Both {
  double model = 0;
  double seen = 0;
  [[nodiscard]] double off() const { return seen / model - 1; }
};

struct Row {
  std::string shape;
  Problem problem;
  Both sm_read, sm_written, hbm_read, hbm_written, peak, seconds;
};

double number(Bytes bytes) { return static_cast<double>(bytes.value()); }

/// The row's problem in the model: the kernel's tiles and habits, on the machine as it was calibrated.
Row modelled(Kernel kernel, const json& row) {
  Row r;
  r.problem = {.batch = row.at("batch"),
               .heads = row.at("heads"),
               .kv_heads = row.at("kv_heads"),
               .seq = row.at("seq"),
               .kv_seq = row.at("kv_seq"),
               .head_dim = row.at("head_dim"),
               .causal = row.at("causal"),
               .storage = number_type_named(row.at("dtype").get<std::string>()).value()};
  const Problem& p = r.problem;
  const Method method = method_of(kernel, p);
  const auto report = account_of(
      {.kernel = kernel, .problem = p, .gpu = kMeasurements + "h200_calibrated.json", .count_never = true});
  REQUIRE(report.ok());
  const auto seen = [&](const char* figure) { return row.at(figure).at("measured").get<double>(); };
  const Flow sm = report->tally().sm_total();
  // Standard attention's account has no L, and every kernel writes it.
  const Bytes lse = method.algorithm == Algorithm::standard
                        ? Bytes(p.batch * p.heads * p.seq * size_of(NumberType::fp32))
                        : Bytes();
  r.sm_read = {number(sm.read), seen("sm_read_bytes")};
  r.sm_written = {number(sm.written + lse), seen("sm_written_bytes")};
  r.hbm_read = {number(report->simulation->after_l2.hbm.read), seen("hbm_read_bytes")};
  r.hbm_written = {number(report->simulation->after_l2.hbm.written), seen("hbm_written_bytes")};
  r.peak = {number(report->tally().peak_allocated + lse), seen("peak_memory_bytes")};
  r.seconds = {report->simulation->time->total.value, seen("seconds")};
  r.shape = fmt::format(
      "{}, {}, {}, {}{}", p.batch,
      p.heads == p.kv_heads ? fmt::format("{}", p.heads) : fmt::format("{}/{}", p.heads, p.kv_heads),
      p.seq == p.kv_seq ? fmt::format("{}", p.seq) : fmt::format("{}/{}", p.seq, p.kv_seq), p.head_dim,
      p.causal ? ", causal" : "");
  return r;
}

std::vector<Row> rows_of(Kernel kernel, const std::string& file) {
  std::vector<Row> rows;
  const json report = measured(file);
  for (const json& row : report.at("rows")) rows.push_back(modelled(kernel, row));
  return rows;
}

constexpr const char* kFlash = "h200_ladder_03.json";

TEST_CASE("03 moves and keeps what the model has, on every shape that was measured") {
  const std::vector<Row> rows = rows_of(Kernel::flash_fp32, kFlash);
  CHECK(rows.size() >= 12);
  for (const Row& r : rows) {
    INFO(r.shape);
    CHECK(std::fabs(r.sm_read.off()) <= 0.01);
    CHECK(std::fabs(r.sm_written.off()) <= 0.02);
    CHECK(std::fabs(r.hbm_read.off()) <= 0.15);
    // The pool hands out whole units of 512 bytes, to O and to L.
    CHECK(r.peak.seen >= r.peak.model);
    CHECK(r.peak.seen < r.peak.model + 2 * 512);
  }
}

TEST_CASE("03 takes the time that the model has, within a quarter, by calibrated rates") {
  for (const Row& r : rows_of(Kernel::flash_fp32, kFlash)) {
    INFO(r.shape);
    CHECK(std::fabs(r.seconds.off()) <= 0.25);
  }
}

TEST_CASE("each of 03's measurements was right and cold, and spilled nothing") {
  const json report = measured(kFlash);
  for (const char* key : {"gpu", "driver", "date", "command"})
    CHECK_FALSE(report.at(key).get<std::string>().empty());
  for (const json& row : report.at("rows")) {
    CHECK(row.at("verdict") == "right");
    CHECK(row.at("bytes") == "measured");
    CHECK(row.at("tensor_instructions") == 0);
    CHECK(row.at("local_memory_bytes_per_thread") == json::array({0}));
  }
}

/// "+1.2 %" of what was measured over the model.
std::string percent(const Both& both, int digits = 1) {
  const double rounded = std::round(100 * both.off() * std::pow(10, digits)) / std::pow(10, digits) + 0.0;
  return rounded == 0 ? "0 %" : fmt::format("{:+.{}f} %", rounded, digits);
}

std::string bytes_text(double bytes) { return size_text(Bytes(static_cast<std::int64_t>(bytes))); }

std::string shapes_table() {
  std::string text =
      "| B, H/Hkv, N/Nkv, d | into the SMs | | out of them | | HBM read: model | measured | | HBM written: "
      "model | "
      "measured | time: model | measured | |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Row& r : rows_of(Kernel::flash_fp32, kFlash)) {
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", r.shape,
                    bytes_text(r.sm_read.seen), percent(r.sm_read, 2), bytes_text(r.sm_written.seen),
                    percent(r.sm_written, 2), bytes_text(r.hbm_read.model), bytes_text(r.hbm_read.seen),
                    percent(r.hbm_read), bytes_text(r.hbm_written.model), bytes_text(r.hbm_written.seen),
                    seconds_text({r.seconds.model}), seconds_text({r.seconds.seen}), percent(r.seconds, 0));
  }
  return text;
}

/// A figure of `flashsim measure`, by its name.
Both figure(const json& kernel, const std::string& name) {
  for (const json& each : kernel.at("measurement").at("figures")) {
    if (each.at("figure") == name) return {each.at("model").get<double>(), each.at("seen").get<double>()};
  }
  throw std::runtime_error("no figure " + name);
}

const json& kernel_of(const json& report) { return report.at("result").at("kernels").at(0); }

Both seconds(const json& kernel) {
  const json& time = kernel.at("measurement").at("time");
  return {time.at("model_seconds").get<double>(), time.at("median_seconds").get<double>()};
}

TEST_CASE("the worked example's counters are the account's, for standard attention and for flash") {
  const json standard = measured("h200_worked_02.json");
  const json flash = measured("h200_worked_03.json");
  for (const json* report : {&standard, &flash}) {
    CHECK(kernel_of(*report).at("verdict") == "right");
    CHECK(kernel_of(*report).at("measurement").at("bytes") == "measured");
  }
  // 16.25 GiB as papers count, and what the counters of HBM see.
  const Both papers = figure(kernel_of(standard), "papers_hbm_bytes");
  CHECK(papers.model == 16.25 * 1024 * 1024 * 1024);
  CHECK(std::fabs(papers.off()) <= 0.10);
  CHECK(std::fabs(figure(kernel_of(flash), "sm_read_bytes").off()) <= 0.01);
  CHECK(std::fabs(figure(kernel_of(flash), "sm_written_bytes").off()) <= 0.02);
  CHECK(std::fabs(figure(kernel_of(flash), "hbm_read_bytes").off()) <= 0.15);
}

std::string worked_table() {
  const json standard = measured("h200_worked_02.json");
  const json flash = measured("h200_worked_03.json");
  std::string text =
      "| | standard (02, fp16): model | measured | | flash (03, fp32): model | measured | |\n"
      "|---|---:|---:|---:|---:|---:|---:|\n";
  const auto line = [&](const char* title, const Both& a, const Both& b, const auto& show) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", title, show(a.model), show(a.seen),
                        percent(a), show(b.model), show(b.seen), percent(b));
  };
  const auto both = [&](const char* title, const std::string& name) {
    line(title, figure(kernel_of(standard), name), figure(kernel_of(flash), name), bytes_text);
  };
  both("HBM traffic as papers count, beside HBM's counters", "papers_hbm_bytes");
  both("reads into the SMs", "sm_read_bytes");
  both("writes out of them", "sm_written_bytes");
  both("HBM reads behind the L2", "hbm_read_bytes");
  both("HBM writes behind the L2", "hbm_written_bytes");
  both("peak memory above the inputs", "peak_memory_bytes");
  line("time", seconds(kernel_of(standard)), seconds(kernel_of(flash)),
       [](double time) { return seconds_text({time}); });
  return text;
}

std::string wrong_rows(const json& result) {
  const auto count = [](const json& n) { return grouped(n.get<std::int64_t>()); };
  return fmt::format("{} / {}", count(result.at("wrong_rows_o")), count(result.at("wrong_rows_l")));
}

std::string first_wrong(const json& result) {
  const json& first = result.at("first_wrong");
  if (first.is_null()) return "–";
  return fmt::format("head {}, row {}, key tile {}", first.at("head").get<int>(), first.at("row").get<int>(),
                     first.at("key_tile").is_null() ? "–" : first.at("key_tile").dump());
}

std::string error_of(const json& result, const char* key) {
  const json& error = result.at(key);
  if (error.is_string()) return error == "Infinity" ? "∞" : error.get<std::string>();
  return three_digits(error.get<double>());
}

TEST_CASE("each switch breaks the same rows on the GPU as on the CPU, from the same tile on") {
  const json rows = measured("h200_switches.json").at("rows");
  CHECK(rows.size() == 9);
  for (const json& row : rows) {
    INFO(row.at("switch"));
    for (const char* key : {"verdict", "wrong_rows_o", "wrong_rows_l", "first_wrong"}) {
      CHECK(row.at("cuda").at(key) == row.at("cpu").at(key));
    }
    CHECK((row.at("cuda").at("verdict") == "right") == (row.at("switch") == ""));
  }
}

std::string switches_table() {
  std::string text =
      "| switch | wrong rows of O / of L: GPU | CPU | first wrong: GPU | CPU | largest error of O: GPU | CPU "
      "| of L: GPU "
      "| CPU |\n|---|---:|---:|---|---|---:|---:|---:|---:|\n";
  const json report = measured("h200_switches.json");
  for (const json& row : report.at("rows")) {
    const json& gpu = row.at("cuda");
    const json& cpu = row.at("cpu");
    const auto name = row.at("switch").get<std::string>();
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        name.empty() ? "none" : fmt::format("`{}`", name), wrong_rows(gpu), wrong_rows(cpu),
                        first_wrong(gpu), first_wrong(cpu), error_of(gpu, "max_abs_o"),
                        error_of(cpu, "max_abs_o"), error_of(gpu, "max_abs_l"), error_of(cpu, "max_abs_l"));
  }
  return text;
}

/// One line for each kernel of ours and shape: its time, and the time of each peer over it.
std::string peers_table() {
  const std::vector<std::pair<const char*, const char*>> peers{{"torch eager", "eager"},
                                                               {"torch math", "math"},
                                                               {"torch memory-efficient", "memory-efficient"},
                                                               {"torch flash", "flash"},
                                                               {"torch cudnn", "cuDNN"}};
  std::string text = "| kernel | B, H, N, d | time | TFLOP/s |";
  for (const auto& [who, title] : peers) text += fmt::format(" {} |", title);
  text += "\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n";
  const json rows = measured("h200_peers.json").at("rows");
  const auto same = [](const json& a, const json& b) {
    return std::all_of(std::begin(kShapeKeys), std::end(kShapeKeys),
                       [&](const char* key) { return a.at(key) == b.at(key); });
  };
  for (const json& ours : rows) {
    if (ours.at("who").get<std::string>().rfind("torch", 0) == 0) continue;
    text += fmt::format("| {}, {} | {}, {}, {}, {}{} | {} | {} |", ours.at("who").get<std::string>(),
                        ours.at("type").get<std::string>(), ours.at("batch").get<int>(),
                        ours.at("heads") == ours.at("kv_heads")
                            ? ours.at("heads").dump()
                            : fmt::format("{}/{}", ours.at("heads").dump(), ours.at("kv_heads").dump()),
                        ours.at("seq").get<int>(), ours.at("head_dim").get<int>(),
                        ours.at("causal").get<bool>() ? ", causal" : "",
                        seconds_text({ours.at("median_seconds").get<double>()}),
                        three_digits(ours.at("tflops").get<double>()));
    for (const auto& [who, title] : peers) {
      const auto peer = std::find_if(rows.begin(), rows.end(), [&](const json& each) {
        return each.at("who") == who && same(each, ours) && each.contains("median_seconds") &&
               each.at("median_seconds").is_number();
      });
      text += peer == rows.end()
                  ? " – |"
                  : fmt::format(" {} |", three_digits(peer->at("median_seconds").get<double>() /
                                                      ours.at("median_seconds").get<double>()));
    }
    text += "\n";
  }
  return text;
}

TEST_CASE("the ladder's rungs are as fast beside PyTorch as they should be") {
  const json rows = measured("h200_peers.json").at("rows");
  int compared = 0;
  for (const json& peer : rows) {
    if (!peer.contains("median_seconds") || !peer.at("median_seconds").is_number()) continue;
    const bool efficient = peer.at("who") == "torch memory-efficient" && peer.at("type") == "fp32";
    const bool eager = peer.at("who") == "torch eager" && peer.at("type") == "fp16";
    if (!efficient && !eager) continue;
    const json& ratios = peer.at("ours_over_it");
    ++compared;
    INFO(peer.dump());
    if (efficient) CHECK(ratios.at("03_flash_fp32").get<double>() >= 0.35);
    if (eager) CHECK(ratios.at("02_standard_cublas").get<double>() >= 1.0);
  }
  CHECK(compared >= 8);
}

/// Holds the text between two marks of docs/measured.md against `expected`, or writes it there.
void check_table(const std::string& mark, const std::string& expected) {
  const std::string path = FLASHSIM_SOURCE_DIR "/docs/measured.md";
  const std::string text = text_of(path);
  const std::string begin = fmt::format("<!-- {} -->\n", mark);
  const auto from = text.find(begin);
  const auto to = text.find(fmt::format("<!-- end of {} -->\n", mark));
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::size_t start = from + begin.size();
  if (const char* update = std::getenv("FLASHSIM_UPDATE_DOCS");
      update != nullptr && std::string(update) == "1") {
    std::ofstream(path) << text.substr(0, start) << expected << text.substr(to);
    return;
  }
  CHECK(text.substr(start, to - start) == expected);
}

TEST_CASE("the tables of the documents are made of the measurements and of the model as it is") {
  check_table("worked", worked_table());
  check_table("shapes", shapes_table());
  check_table("switches", switches_table());
  check_table("peers", peers_table());
}

}  // namespace
}  // namespace flashsim
