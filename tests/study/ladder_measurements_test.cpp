// What was measured of the ladder on an H200 beside the model as it is now:
// docs/measurements/h200_ladder_*.json. The tables in docs/measured.md are made here, and compared; with
// FLASHSIM_UPDATE_DOCS=1 they are written.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/quantity_text.hpp"
#include "core/problem/kernel.hpp"
#include "core/study/account.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

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
  AccountSources sources;
  sources.habits = habits_of(kernel, p);
  const auto report = make_account({.algorithm = method.algorithm,
                                    .batch = p.batch,
                                    .heads = p.heads,
                                    .kv_heads = p.kv_heads,
                                    .seq = p.seq,
                                    .kv_seq = p.kv_seq,
                                    .head_dim = p.head_dim,
                                    .dtype = p.storage,
                                    .causal = p.causal,
                                    .tiles = {method.tiling.query_rows, method.tiling.key_rows},
                                    .gpu = kMeasurements + "h200_calibrated.json",
                                    .count_never = true,
                                    .machine = true},
                                   {}, sources);
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
  for (const json& row : measured(file).at("rows")) rows.push_back(modelled(kernel, row));
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

TEST_CASE("the table of 03's shapes in the documents is the one that the model makes") {
  check_table("shapes", shapes_table());
}

}  // namespace
}  // namespace flashsim
