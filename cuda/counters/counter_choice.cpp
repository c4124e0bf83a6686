#include "cuda/counters/counter_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace flashsim {
namespace {

struct Way {
  std::string_view metric;
  std::string_view less;
};

struct Ways {
  std::string_view what;
  std::vector<Way> ways;  ///< best first
};

/// As CUPTI lists them for GA100, GA102, AD102, GH100, GB100 and GB202.
const std::array<Ways, kCounters.size()>& all_ways() {
  static const std::array<Ways, kCounters.size()> ways{{
      {"sm_read_bytes", {{"l1tex__m_xbar2l1tex_read_bytes.sum", ""}}},
      {"sm_written_bytes", {{"l1tex__m_l1tex2xbar_write_bytes.sum", ""}}},
      {"hbm_read_bytes", {{"dram__bytes_read.sum", ""}, {"dram__bytes_op_read.sum", ""}}},
      {"hbm_written_bytes", {{"dram__bytes_write.sum", ""}, {"dram__bytes_op_write.sum", ""}}},
      {"shared_wavefronts", {{"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", ""}}},
      // On GA100 and GH100 the tensor units also take HFMA2.MMA, which is no matrix product: compilers set
      // registers to constants with it. AD102 calls its first metric deprecated.
      {"tensor_instructions",
       {{"sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"},
        {"sm__inst_executed_pipe_tensor_v2.sum", ""},
        {"sm__inst_executed_pipe_tensor.sum", ""}}},
      {"exponential_instructions",
       {{"sm__inst_executed_pipe_xu.sum", ""}, {"smsp__inst_executed_pipe_xu.sum", ""}}},
      {"sm_clock_hz",
       {{"sm__cycles_elapsed.avg.per_second", ""}, {"smsp__cycles_elapsed.avg.per_second", ""}}},
  }};
  return ways;
}

std::optional<std::int64_t> count_of(double value) {
  constexpr double kLimit = 9.2e18;
  if (!std::isfinite(value) || value < 0 || value > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(value));
}

/// The value of `metric`; 0 for no metric, and NaN where it has none.
double number(const std::function<std::optional<double>(const std::string&)>& value_of,
              const std::string& metric) {
  return metric.empty() ? 0 : value_of(metric).value_or(std::nan(""));
}

}  // namespace

std::string_view base_metric(std::string_view metric) { return metric.substr(0, metric.find('.')); }

std::vector<ChosenCounter> choose_counters(const std::set<std::string, std::less<>>& listed,
                                           const std::function<bool(const std::string&)>& can_be_counted) {
  const auto is_listed = [&](std::string_view metric) {
    return metric.empty() || listed.contains(base_metric(metric));
  };
  const auto is_counted = [&](std::string_view metric) {
    return metric.empty() || can_be_counted(std::string(metric));
  };
  std::vector<ChosenCounter> chosen;
  for (const Ways& known : all_ways()) {
    ChosenCounter counter{.what = std::string(known.what), .metric = "", .less = ""};
    const auto way = std::ranges::find_if(
        known.ways, [&](const Way& w) { return is_listed(w.metric) && is_listed(w.less); });
    if (way != known.ways.end() && is_counted(way->metric) && is_counted(way->less)) {
      counter.metric = way->metric;
      counter.less = way->less;
    }
    chosen.push_back(std::move(counter));
  }
  return chosen;
}

std::vector<std::vector<std::string>> groups_of(std::span<const ChosenCounter> chosen) {
  std::vector<std::string> sums;
  std::vector<std::vector<std::string>> groups;
  const auto take = [&](const std::string& metric) {
    if (metric.empty() || std::ranges::find(sums, metric) != sums.end()) return;
    if (metric.ends_with(".per_second")) {
      groups.push_back({metric});
    } else {
      sums.push_back(metric);
    }
  };
  for (const ChosenCounter& counter : chosen) {
    take(counter.metric);
    take(counter.less);
  }
  if (!sums.empty()) groups.push_back(std::move(sums));
  return groups;
}

std::vector<CounterReading> readings_of(
    std::span<const ChosenCounter> chosen,
    const std::function<std::optional<double>(const std::string&)>& value_of) {
  std::vector<CounterReading> readings;
  for (const ChosenCounter& counter : chosen) {
    CounterReading reading{.what = counter.what, .metric = counter.metric, .value = {}};
    if (!counter.less.empty()) reading.metric += " - " + counter.less;
    if (!counter.metric.empty()) {
      reading.value = count_of(number(value_of, counter.metric) - number(value_of, counter.less));
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace flashsim
