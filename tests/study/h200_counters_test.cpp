// The model beside counters of two real kernels on an H200: tests/data/h200_counters.json, and
// docs/measurements/h200_attention_counters.json. The table in docs/machine-model.md is made here, and
// compared; with FLASHSIM_UPDATE_DOCS=1 it is written.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/study/account.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

json rows_of(const std::string& file) {
  return json::parse(text_of(std::string(FLASHSIM_SOURCE_DIR) + "/" + file)).at("rows");
}

struct Row {
  bool cudnn = false;
  std::int64_t seq = 0;
  std::string shape;
  double measured_sm_read = 0, measured_read = 0, measured_write = 0, measured_seconds = 0;
  double sm_read = 0, read = 0, write = 0, seconds = 0;
};

/// A difference in percent, without a sign where it is none at that many digits.
std::string percent(double model, double measured, int digits) {
  const double unit = std::pow(10, -digits);
  const double rounded = std::round(100 * (model / measured - 1) / unit) * unit + 0.0;
  return rounded == 0 ? "0 %" : fmt::format("{:+.{}f} %", rounded, digits);
}

/// The habits of the two kernels. cuDNN's is the default; the other walks its keys backward, two blocks an
/// SM, and its four warps multiply fragments.
Row modelled(const json& row, const std::string& gpu, bool simulated = true) {
  Row r;
  r.cudnn = row.at("kernel") == "cudnn-sdpa";
  r.seq = row.at("seq");
  AccountRequest request{.batch = row.at("batch").get<std::int64_t>(),
                         .heads = row.at("heads").get<std::int64_t>(),
                         .kv_heads = row.value("kv_heads", row.at("heads").get<std::int64_t>()),
                         .seq = r.seq,
                         .head_dim = row.at("head_dim").get<std::int64_t>(),
                         .causal = row.at("causal").get<bool>(),
                         .gpu = gpu,
                         .count_never = true,
                         .machine = simulated};
  request.tiles.query_rows = row.at("tile_q").get<std::int64_t>();
  request.tiles.key_rows = row.at("tile_k").is_null() ? 128 : row.at("tile_k").get<std::int64_t>();
  AccountSources sources;
  if (!r.cudnn) {
    sources.habits = {.key_order = KeyOrder::reverse,
                      .blocks_per_sm = 2,
                      .fragments = Fragments{.warp_rows = *request.tiles.query_rows / 4}};
  }
  const auto report = make_account(request, {}, sources);
  REQUIRE(report.ok());
  r.shape = fmt::format("{}, {}, {}, {}{}", row.at("batch").get<int>(), row.at("heads").get<int>(), r.seq,
                        row.at("head_dim").get<int>(), row.at("causal").get<bool>() ? ", causal" : "");
  r.measured_sm_read = row.at("l2_to_sm_read_bytes");
  r.measured_read = row.at("dram_read_bytes");
  r.measured_write = row.at("dram_write_bytes");
  r.measured_seconds = row.at("time_us").get<double>() * 1e-6;
  r.sm_read = static_cast<double>(report->tally().sm_total().read.value());
  if (!simulated) return r;
  r.read = static_cast<double>(report->simulation->after_l2.hbm.read.value());
  r.write = static_cast<double>(report->simulation->after_l2.hbm.written.value());
  r.seconds = report->simulation->time->total.value;
  return r;
}

double off(double model, double measured) { return std::abs(model / measured - 1); }

TEST_CASE("what crosses into the SMs is within 0.2 % of the counter for every row") {
  for (const json& row : rows_of("tests/data/h200_counters.json")) {
    const Row r = modelled(row, "h200", false);
    INFO(r.shape);
    CHECK(off(r.sm_read, r.measured_sm_read) < 0.002);
  }
}

TEST_CASE("HBM reads of cuDNN's kernel are within 15 %, and its time from 2048 tokens on within 25 %") {
  for (const json& row : rows_of("tests/data/h200_counters.json")) {
    if (row.at("kernel") != "cudnn-sdpa") continue;
    for (const char* gpu : {"h200", "h200-measured"}) {
      const Row r = modelled(row, gpu);
      INFO(r.shape << " on " << gpu);
      CHECK(off(r.read, r.measured_read) < 0.15);
      if (r.seq >= 2048) CHECK(off(r.seconds, r.measured_seconds) < 0.25);
    }
  }
}

TEST_CASE("the time of a kernel that multiplies fragments is within 25 % from 2048 tokens on") {
  for (const json& row : rows_of("tests/data/h200_counters.json")) {
    if (row.at("kernel") == "cudnn-sdpa") continue;
    for (const char* gpu : {"h200", "h200-measured"}) {
      const Row r = modelled(row, gpu);
      INFO(r.shape << " on " << gpu);
      if (r.seq >= 2048) CHECK(off(r.seconds, r.measured_seconds) < 0.25);
    }
  }
}

TEST_CASE("the same holds for shapes that the model wasn't made from") {
  double sum = 0;
  int count = 0;
  for (const json& row : rows_of("docs/measurements/h200_attention_counters.json")) {
    const Row r = modelled(row, "h200", row.at("kernel") == "cudnn-sdpa");
    INFO(r.shape);
    CHECK(off(r.sm_read, r.measured_sm_read) < 0.002);
    if (!r.cudnn) continue;
    CHECK(off(r.read, r.measured_read) < 0.15);
    if (r.seq >= 2048) CHECK(off(r.seconds, r.measured_seconds) < 0.25);
    sum += off(r.read, r.measured_read);
    ++count;
  }
  CHECK(count == 30);
  CHECK(sum / count < 0.03);
}

std::string table() {
  std::string text =
      "| kernel | B, H, N, d | into the SMs | HBM read: measured | model | | HBM written: measured | model | "
      "time: measured | model | |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const json& row : rows_of("tests/data/h200_counters.json")) {
    const Row r = modelled(row, "h200-measured");
    text += fmt::format(
        "| {} | {} | {} | {:.1f} MB | {:.1f} MB | {} | {:.1f} MB | {:.1f} MB | {:.0f} µs | {:.0f} µs | {} "
        "|\n",
        r.cudnn ? "cuDNN" : "PyTorch flash", r.shape, percent(r.sm_read, r.measured_sm_read, 2),
        r.measured_read / 1e6, r.read / 1e6, percent(r.read, r.measured_read, 1), r.measured_write / 1e6,
        r.write / 1e6, r.measured_seconds * 1e6, r.seconds * 1e6, percent(r.seconds, r.measured_seconds, 0));
  }
  return text;
}

TEST_CASE("the table of the documents is the one that the model makes") {
  const std::string path = std::string(FLASHSIM_SOURCE_DIR) + "/docs/machine-model.md";
  const std::string text = text_of(path);
  const std::string begin = "<!-- counters -->\n";
  const std::string end = "<!-- end of counters -->\n";
  const auto from = text.find(begin);
  const auto to = text.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::size_t start = from + begin.size();
  if (const char* update = std::getenv("FLASHSIM_UPDATE_DOCS");
      update != nullptr && std::string(update) == "1") {
    std::ofstream(path) << text.substr(0, start) << table() << text.substr(to);
    return;
  }
  CHECK(text.substr(start, to - start) == table());
}

}  // namespace
}  // namespace flashsim
