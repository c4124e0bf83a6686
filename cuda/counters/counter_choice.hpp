// Which of a chip's metrics give the readings that are asked for. Names drift from chip to chip, so each
// reading knows several ways, and those that the chip lists and takes are used. Knows nothing of CUPTI.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/device.hpp"

namespace flashsim {

/// How one of kCounters is read on a chip: by a metric, less another where that one counts too much.
struct ChosenCounter {
  std::string what;
  std::string metric;  ///< empty: the chip has no way
  std::string less;    ///< empty: nothing is taken off
};

/// The name under which a chip lists a metric: "dram__bytes_read" of "dram__bytes_read.sum".
std::string_view base_metric(std::string_view metric);

/// One for each of kCounters, in that order: the first way of which the chip lists every metric, `listed`
/// holding base names. Where `can_be_counted` says no to one, asked as "dram__bytes_read.sum", the counter
/// has no way: another way may count something else.
std::vector<ChosenCounter> choose_counters(const std::set<std::string, std::less<>>& listed,
                                           const std::function<bool(const std::string&)>& can_be_counted);

/// Every metric that is needed, each once, in groups that are counted in runs of their own. A rate is alone:
/// it divides what two counters say, and on short work they must speak of one run.
std::vector<std::vector<std::string>> groups_of(std::span<const ChosenCounter> chosen);

/// The readings, from the value of each metric. A metric without a value, or with one that is no count,
/// leaves its reading without a value.
std::vector<CounterReading> readings_of(
    std::span<const ChosenCounter> chosen,
    const std::function<std::optional<double>(const std::string&)>& value_of);

}  // namespace flashsim
