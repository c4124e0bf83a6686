// The vector code of every instruction set that the machine has, to be held against plain scalar code: drawn
// numbers, what counts as the same, and what a multiply-add gives where it isn't fused.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/attention/vector/panel.hpp"
#include "core/attention/vector/tile_kernels.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim::test {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr T kInfinite = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr std::int64_t kWidth = kPanelWidth<T>;

/// A target without fused multiply-adds rounds twice.
template <class T>
bool fuses(const TileKernels<T>& kernels) {
  const std::string_view target = kernels.target;
  return target != "SSE2" && target != "EMU128" && target != "SCALAR";
}
template <class T>
T multiply_add(const TileKernels<T>& kernels, T a, T b, T sum) {
  if (fuses(kernels)) return std::fma(a, b, sum);
  const volatile T product = a * b;
  return product + sum;
}

template <class T>
bool is_no_weight(T x) {
  return x == T(0) && std::signbit(x);
}

template <class T>
AlignedVector<T> drawn(RandomNumbers& random, std::int64_t n, double magnitude = 2) {
  AlignedVector<T> numbers(static_cast<std::size_t>(n));
  for (T& number : numbers) number = static_cast<T>(random.next(magnitude));
  return numbers;
}

template <class T>
bool same(const AlignedVector<T>& a, const AlignedVector<T>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}
/// NaN has to meet NaN; and zeros have to have the same sign.
template <class T>
bool same(T a, T b) {
  return same_bits(&a, &b, 1);
}

/// Runs `look(kernels)` in float and double for every target.
template <class Look>
void for_every_target(Look look) {
  for (const TileKernels<float>* kernels : tile_kernels_of_every_target<float>()) {
    INFO("float, " << kernels->target);
    look(*kernels);
  }
  for (const TileKernels<double>* kernels : tile_kernels_of_every_target<double>()) {
    INFO("double, " << kernels->target);
    look(*kernels);
  }
}

/// The element type of the kernels.
template <class T>
T element_of(const TileKernels<T>&);

/// exp of each of `x`.
template <class T>
std::vector<T> exponentials_of(const TileKernels<T>& kernels, const std::vector<T>& x) {
  const std::size_t whole = (x.size() + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  AlignedVector<T> in(whole), out(whole);
  std::copy(x.begin(), x.end(), in.begin());
  kernels.exponential(in.data(), static_cast<std::int64_t>(whole), out.data());
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(x.size())};
}

}  // namespace flashsim::test
