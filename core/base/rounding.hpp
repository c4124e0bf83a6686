// Rounding to a storage type: to nearest, ties to even, subnormals kept, overflow to infinity.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "core/base/number_types.hpp"

namespace flashsim {

/// What rounding to a format needs to know.
struct StorageFormat {
  int digits;          ///< p, bits of the significand, the hidden one counted
  int least_exponent;  ///< of the smallest normal number: 2^e
  double largest;      ///< the largest finite number
  double unit() const { return std::ldexp(1.0, -digits); }                          ///< u = 2⁻ᵖ
  double smallest() const { return std::ldexp(1.0, least_exponent - digits + 1); }  ///< the least subnormal
};

constexpr StorageFormat format_of(NumberType type) {
  switch (type) {
    case NumberType::fp16: return {11, -14, 65504.0};
    case NumberType::bf16: return {8, -126, 0x1.FEp127};
    case NumberType::fp32: return {24, -126, 0x1.FFFFFEp127};
    case NumberType::fp8:
    case NumberType::fp64: break;
  }
  return {53, -1022, std::numeric_limits<double>::max()};
}

/// `type` holds fewer numbers than T.
template <std::floating_point T>
constexpr bool is_narrower(NumberType type) {
  return format_of(type).digits < std::numeric_limits<T>::digits;
}

/// `value` as `type` stores it. NaN stays NaN.
template <std::floating_point T>
T stored_as(NumberType type, T value) {
  if (!is_narrower<T>(type) || !std::isfinite(value) || value == T(0)) return value;
  const StorageFormat format = format_of(type);
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(e−1), 2^e)
  const int least = format.least_exponent - format.digits + 1;
  const int place = std::max(exponent - format.digits, least);
  // Scaled to a whole number this is exact, and nearbyint rounds ties to even.
  const T rounded = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::fabs(rounded) > static_cast<T>(format.largest)
             ? std::copysign(std::numeric_limits<T>::infinity(), value)
             : rounded;
}

}  // namespace flashsim
