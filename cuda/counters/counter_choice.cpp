#include "cuda/counters/counter_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace flashsim {
namespace {

using Way = std::vector<std::string_view>;

struct Ways {
  std::string_view what;
  std::vector<Way> ways;  ///< best first
};

/// As CUPTI lists them for GA100, GA102, AD102, GH100, GB100 and GB202.
const std::array<Ways, kCounters.size()>& all_ways() {
  static const std::array<Ways, kCounters.size()> ways{{
      {"sm_read_bytes", {{"l1tex__m_xbar2l1tex_read_bytes.sum"}}},
      {"sm_written_bytes", {{"l1tex__m_l1tex2xbar_write_bytes.sum"}}},
      {"hbm_read_bytes", {{"dram__bytes_read.sum"}, {"dram__bytes_op_read.sum"}}},
      {"hbm_written_bytes", {{"dram__bytes_write.sum"}, {"dram__bytes_op_write.sum"}}},
      {"shared_wavefronts", {{"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"}}},
      // GB100 has two kinds of tensor units: mma runs on one, tcgen05.mma on the other.
      {"tensor_instructions",
       {{"sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tc.sum"},
        {"sm__inst_executed_pipe_tensor.sum"},
        {"smsp__inst_executed_pipe_tensor.sum"},
        {"sm__inst_executed_pipe_tc.sum"}}},
      {"exponential_instructions", {{"sm__inst_executed_pipe_xu.sum"}, {"smsp__inst_executed_pipe_xu.sum"}}},
      {"sm_clock_hz", {{"sm__cycles_elapsed.avg.per_second"}, {"smsp__cycles_elapsed.avg.per_second"}}},
  }};
  return ways;
}

std::optional<std::int64_t> count_of(double value) {
  constexpr double kLimit = 9.2e18;
  if (!std::isfinite(value) || value < 0 || value > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(value));
}

std::string sum_text(std::span<const std::string> metrics) {
  std::string text;
  for (const std::string& metric : metrics) text += (text.empty() ? "" : " + ") + metric;
  return text;
}

}  // namespace

std::string_view base_metric(std::string_view metric) { return metric.substr(0, metric.find('.')); }

std::vector<ChosenCounter> choose_counters(const std::set<std::string, std::less<>>& listed,
                                           const std::function<bool(const std::string&)>& can_be_counted) {
  const auto usable = [&](std::string_view metric) {
    return listed.contains(base_metric(metric)) && can_be_counted(std::string(metric));
  };
  std::vector<ChosenCounter> chosen;
  for (const std::string_view what : kCounters) {
    ChosenCounter counter{.what = std::string(what), .metrics = {}};
    const auto known = std::ranges::find(all_ways(), what, &Ways::what);
    if (known != all_ways().end()) {
      const auto way =
          std::ranges::find_if(known->ways, [&](const Way& w) { return std::ranges::all_of(w, usable); });
      if (way != known->ways.end()) counter.metrics.assign(way->begin(), way->end());
    }
    chosen.push_back(std::move(counter));
  }
  return chosen;
}

std::vector<std::string> metrics_of(std::span<const ChosenCounter> chosen) {
  std::vector<std::string> metrics;
  for (const ChosenCounter& counter : chosen) {
    for (const std::string& metric : counter.metrics) {
      if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
    }
  }
  return metrics;
}

std::vector<CounterReading> readings_of(
    std::span<const ChosenCounter> chosen,
    const std::function<std::optional<double>(const std::string&)>& value_of) {
  std::vector<CounterReading> readings;
  for (const ChosenCounter& counter : chosen) {
    CounterReading reading{.what = counter.what, .metric = sum_text(counter.metrics), .value = {}};
    if (!counter.metrics.empty()) {
      double sum = 0;
      for (const std::string& metric : counter.metrics) sum += value_of(metric).value_or(std::nan(""));
      reading.value = count_of(sum);
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace flashsim
