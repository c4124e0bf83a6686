// The state of a row between key tiles, a maximum m and a denominator l, and what it means where nothing has
// been seen.
#pragma once

#include <cmath>
#include <limits>

namespace flashsim {

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

/// While nothing has been seen, 0 is subtracted: exp(−∞) is 0, and (−∞) − (−∞) would be NaN.
template <class T>
T reference(T m) {
  return m == kMinusInfinity<T> ? T(0) : m;
}

/// No score above −∞ was seen, and no NaN.
template <class T>
bool is_empty_row(T m, T l) {
  return m == kMinusInfinity<T> && l == T(0);
}

template <class T>
T logsumexp(T m, T l) {
  return is_empty_row(m, l) ? kMinusInfinity<T> : m + std::log(l);
}

}  // namespace flashsim
