#include "core/study/sweep_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/parse.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// A factor nearer to 1 would run through more numbers than anyone wants.
constexpr double kSmallestFactor = 1.001;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::int64_t> parse_number(std::string_view name, std::string_view text, RangeOf of) {
  if (of == RangeOf::dimensions) return parse_dimension(name, text);
  const auto size = parse_size(name, text);
  if (!size) return size.error();
  return size->value();
}

Error too_many(std::string_view name, std::string_view range) {
  return {fmt::format("{} runs through more than {} values: '{}'", name, grouped(kMostSweepPoints), range),
          "take a larger step, or a factor: 512:131072:x2"};
}

/// The numbers of one range, `first` to `last`, by a step or a factor.
struct Range {
  std::string_view name;
  std::string_view text;
  std::int64_t first;
  std::int64_t last;

  [[nodiscard]] Result<std::vector<std::int64_t>> stepped(std::int64_t step) const {
    const std::int64_t count = (last - first) / step + 1;
    if (count > kMostSweepPoints) return too_many(name, text);
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(first + i * step);
    return numbers;
  }

  [[nodiscard]] std::vector<std::int64_t> multiplied(long double factor) const {
    // 1.2 isn't a binary fraction, so that 10 · 1.2 may come out a hair below 12: rounding is forgiven.
    constexpr long double kHair = 4 * std::numeric_limits<long double>::epsilon();
    constexpr long double kNoSizeBeyond = 9.2e18L;
    std::vector<std::int64_t> numbers{first};
    long double number = static_cast<long double>(first);
    for (int times = 1;; ++times) {
      number *= factor;
      const long double rounded = std::floor(number * (1 + kHair * static_cast<long double>(times)));
      if (rounded > static_cast<long double>(last) || rounded > kNoSizeBeyond) return numbers;
      const auto next = static_cast<std::int64_t>(rounded);
      if (next > last) return numbers;
      if (next != numbers.back()) numbers.push_back(next);
    }
  }
};

Result<std::vector<std::int64_t>> parse_range(std::string_view name, std::string_view text, RangeOf of) {
  const auto parts = split(text, ':');
  if (parts.size() == 2 || parts.size() > 3) {
    return Error{fmt::format("{} has no range of that form: '{}'", name, text),
                 "ranges are first:last:+step or first:last:xfactor, as in 512:8192:+512 or 512:131072:x2"};
  }
  const auto first = parse_number(name, parts[0], of);
  if (!first) return first.error();
  if (parts.size() == 1) return std::vector<std::int64_t>{*first};
  const auto last = parse_number(name, parts[1], of);
  if (!last) return last.error();
  if (*last < *first) {
    return Error{fmt::format("{} runs backwards: '{}'", name, text),
                 fmt::format("write the smaller number first: {}:{}:{}", parts[1], parts[0], parts[2])};
  }
  const Range range{name, text, *first, *last};
  std::string_view by = parts[2];
  if (by.starts_with('x')) {
    const std::string what = fmt::format("the factor of {}", name);
    const auto factor = parse_finite(what, by.substr(1));
    if (!factor) return factor.error();
    if (*factor < kSmallestFactor) {
      return Error{fmt::format("{} must be at least {}, not '{}'", what, kSmallestFactor, by.substr(1)), ""};
    }
    // The double is good for the check alone: as a long double the factor is nearer to what was written.
    return range.multiplied(std::strtold(std::string(by.substr(1)).c_str(), nullptr));
  }
  if (by.starts_with('+')) by.remove_prefix(1);
  const auto step = parse_number(fmt::format("the step of {}", name), by, of);
  if (!step) return step.error();
  return range.stepped(*step);
}

}  // namespace

std::string value_text(const SweepValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  return *std::get_if<std::string>(&value);
}

Result<std::vector<std::int64_t>> parse_sweep_numbers(std::string_view name, std::string_view text,
                                                      RangeOf of) {
  std::vector<std::int64_t> numbers;
  std::unordered_set<std::int64_t> seen;
  for (const std::string_view part : split(text, ',')) {
    const auto range = parse_range(name, part, of);
    if (!range) return range.error();
    for (const std::int64_t number : *range) {
      if (seen.insert(number).second) numbers.push_back(number);
    }
    if (static_cast<std::int64_t>(numbers.size()) > kMostSweepPoints) return too_many(name, text);
  }
  return numbers;
}

Result<std::vector<std::string>> parse_sweep_names(std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) return Error{fmt::format("{} has an empty name in '{}'", name, text), ""};
    if (std::find(names.begin(), names.end(), part) == names.end()) names.emplace_back(part);
  }
  return names;
}

}  // namespace flashsim
