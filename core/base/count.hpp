// Exact 64-bit counts that can't wrap.
//
// Every byte, FLOP and step of an account is a Count. Arithmetic that leaves the range of a signed
// 64-bit integer, or goes below zero, yields the overflowed count, which stays overflowed in every
// later operation, as NaN does. So a formula is written plainly and checked once, where it ends.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "core/base/wide.hpp"

namespace flashsim {

class Count {
 public:
  constexpr Count() = default;
  /// A count of `value` things; a negative value is the overflowed count.
  constexpr Count(std::int64_t value) : value_(value < 0 ? kOverflowed : value) {}
  /// A count that was computed in 128 bits.
  static constexpr Count from_wide(Wide value) {
    return value < 0 || value >= kOverflowed ? overflow() : Count(static_cast<std::int64_t>(value));
  }
  static constexpr Count overflow() { return Count(kOverflowed); }

  [[nodiscard]] constexpr bool overflowed() const { return value_ == kOverflowed; }
  /// The integer; meaningful only where overflowed() is false.
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }

  friend constexpr Count operator+(Count a, Count b) {
    std::int64_t sum = 0;
    return a.overflowed() || b.overflowed() || __builtin_add_overflow(a.value_, b.value_, &sum) ? overflow()
                                                                                                : Count(sum);
  }
  friend constexpr Count operator-(Count a, Count b) {
    return a.overflowed() || b.overflowed() ? overflow() : Count(a.value_ - b.value_);
  }
  friend constexpr Count operator*(Count a, Count b) {
    std::int64_t product = 0;
    return a.overflowed() || b.overflowed() || __builtin_mul_overflow(a.value_, b.value_, &product)
               ? overflow()
               : Count(product);
  }
  constexpr Count& operator+=(Count other) { return *this = *this + other; }
  friend constexpr bool operator==(Count, Count) = default;
  friend constexpr auto operator<=>(Count, Count) = default;

 private:
  static constexpr std::int64_t kOverflowed = std::numeric_limits<std::int64_t>::max();
  std::int64_t value_ = 0;
};

}  // namespace flashsim
