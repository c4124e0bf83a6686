// Strong units: bytes, FLOPs, seconds and their rates.
//
// Bytes and FLOPs are exact counts, seconds and rates are doubles. What has no meaning doesn't
// compile: bytes can't be added to FLOPs, and bytes divided by a rate give seconds.
#pragma once

#include <compare>
#include <cstdint>

#include "core/base/count.hpp"

namespace flashsim {

/// An exact count of one kind of thing.
template <class Kind>
struct Amount {
  Count count;

  constexpr Amount() = default;
  constexpr explicit Amount(Count c) : count(c) {}
  constexpr explicit Amount(std::int64_t n) : count(n) {}

  [[nodiscard]] constexpr std::int64_t value() const { return count.value(); }
  [[nodiscard]] constexpr bool overflowed() const { return count.overflowed(); }

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount(a.count + b.count); }
  friend constexpr Amount operator-(Amount a, Amount b) { return Amount(a.count - b.count); }
  friend constexpr Amount operator*(Amount a, Count times) { return Amount(a.count * times); }
  friend constexpr Amount operator*(Count times, Amount a) { return Amount(a.count * times); }
  constexpr Amount& operator+=(Amount other) { return *this = *this + other; }
  friend constexpr bool operator==(Amount, Amount) = default;
  friend constexpr auto operator<=>(Amount, Amount) = default;
};

/// How many times `b` goes into `a`.
template <class Kind>
constexpr double ratio(Amount<Kind> a, Amount<Kind> b) {
  return static_cast<double>(a.value()) / static_cast<double>(b.value());
}

using Bytes = Amount<struct BytesKind>;
using Flops = Amount<struct FlopsKind>;

struct Seconds {
  double value = 0;
  friend constexpr auto operator<=>(Seconds, Seconds) = default;
};
constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }

struct BytesPerSecond {
  double value = 0;
};
struct FlopsPerSecond {
  double value = 0;
};
/// Arithmetic intensity.
struct FlopsPerByte {
  double value = 0;
};

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) {
  return {static_cast<double>(amount.value()) / rate.value};
}
constexpr Seconds operator/(Flops amount, FlopsPerSecond rate) {
  return {static_cast<double>(amount.value()) / rate.value};
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return {static_cast<double>(work.value()) / time.value};
}
constexpr FlopsPerByte operator/(Flops work, Bytes moved) {
  return {static_cast<double>(work.value()) / static_cast<double>(moved.value())};
}
/// A machine's balance: the intensity above which arithmetic, not memory, limits it.
constexpr FlopsPerByte operator/(FlopsPerSecond work, BytesPerSecond moved) {
  return {work.value / moved.value};
}

}  // namespace flashsim
