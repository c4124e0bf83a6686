// Measurements of the ladder on an H200 (docs/measurements/h200_*.json) beside the model as it is now, and
// the tables that docs/measured.md has of them; with FLASHSIM_UPDATE_DOCS=1 these are written.
#pragma once

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
#include "core/study/kernel_account.hpp"
#include "tests/catch.hpp"

namespace flashsim {

inline const std::string kMeasurements = FLASHSIM_SOURCE_DIR "/docs/measurements/";

inline std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline nlohmann::json measured(const std::string& file) {
  return nlohmann::json::parse(text_of(kMeasurements + file));
}

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

inline double number(Bytes bytes) { return static_cast<double>(bytes.value()); }

/// The row's problem in the model: the kernel's tiles and habits, on the machine as it was calibrated.
inline Row modelled(Kernel kernel, const nlohmann::json& row) {
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

inline std::vector<Row> rows_of(Kernel kernel, const std::string& file) {
  std::vector<Row> rows;
  const nlohmann::json report = measured(file);
  for (const nlohmann::json& row : report.at("rows")) rows.push_back(modelled(kernel, row));
  return rows;
}

/// "+1.2 %" of what was measured over the model.
inline std::string percent(const Both& both, int digits = 1) {
  const double rounded = std::round(100 * both.off() * std::pow(10, digits)) / std::pow(10, digits) + 0.0;
  return rounded == 0 ? "0 %" : fmt::format("{:+.{}f} %", rounded, digits);
}

inline std::string bytes_text(double bytes) { return size_text(Bytes(static_cast<std::int64_t>(bytes))); }

/// Holds the text between two marks of docs/measured.md against `expected`, or writes it there.
inline void check_table(const std::string& mark, const std::string& expected) {
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

}  // namespace flashsim
