// Numbers as people read them: sizes with three significant digits, grouped integers, ratios.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.hpp"

namespace flashsim {

/// A size in binary units, three significant digits, halves rounded up: 16.3 GiB, 65.0 MiB, 512 B.
std::string size_text(Bytes size);

/// An integer with its digits in groups of three: 67 108 864 (thin on paper, a plain space here).
std::string grouped(std::int64_t number);

/// A positive number with three significant digits: 0.0123, 3.88, 32.5, 128, and no exponent below
/// 10^6.
std::string three_digits(double number);

/// A count of operations with a decimal prefix and three significant digits: 550 G, 1.10 T.
std::string decimal_text(std::int64_t number);

/// FLOPs with a decimal prefix: 550 GFLOP, 48 FLOP.
std::string flops_text(Flops flops);

/// A time with three significant digits, in the unit that fits: 1.23 µs, 45.6 ms, 789 s.
std::string seconds_text(Seconds time);

/// A value of a tensor, as short as it can be at up to six significant digits: 5, 13.3333, −∞, NaN.
std::string value_text(double value);

/// The shortest text that reads back as the same double; NaN, Infinity, -Infinity.
std::string exact_text(double value);

}  // namespace flashsim
