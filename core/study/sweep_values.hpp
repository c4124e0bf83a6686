// What a swept parameter runs through, as it is written: a value, a list `a,b,c`, a range with a step
// `a:b:+s` (or `a:b:s`), or with a factor `a:b:x2`. A list may mix them, and a value that stands twice counts
// once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.hpp"

namespace flashsim {

/// One value of a parameter: a size, a switch or a name.
using SweepValue = std::variant<std::int64_t, bool, std::string>;

/// As it is read and written: "8192", "yes", "fp16".
std::string value_text(const SweepValue& value);

/// The most points of a sweep, and so the most values of a parameter.
inline constexpr std::int64_t kMostSweepPoints = 100'000;

/// What the numbers of a range are.
enum class RangeOf {
  dimensions,  ///< whole numbers from 1 to kLargestDimension
  bytes,       ///< sizes of at least one byte: 16KiB
};

/// The numbers that `text` stands for, in its order. A factor goes up from the first number, rounds down and
/// skips repeats: 1:10:x1.5 is 1, 2, 3, 5, 7. `name` is what errors call it: "--seq". Errors: a number that
/// can't be, a range that runs backwards or has neither step nor factor, too many values.
Result<std::vector<std::int64_t>> parse_sweep_numbers(std::string_view name, std::string_view text,
                                                      RangeOf of);

/// The parts of a list, without what stands twice. Errors: an empty part.
Result<std::vector<std::string>> parse_sweep_names(std::string_view name, std::string_view text);

}  // namespace flashsim
