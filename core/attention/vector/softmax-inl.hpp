// Exponentials, maxima, sums and what else is done lane by lane. Compiled once for every instruction set.
#if defined(FLASHSIM_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FLASHSIM_SOFTMAX_INL
#undef FLASHSIM_SOFTMAX_INL
#else
#define FLASHSIM_SOFTMAX_INL
#endif

#include <limits>

#include <hwy/highway.h>

#include "core/attention/vector/exponential-inl.hpp"
#include "core/attention/vector/panel.hpp"
#include "core/attention/vector/products-inl.hpp"
#include "core/attention/vector/rounding-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace flashsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
std::int64_t LanesOf() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

template <class T>
void Scale(T* s, std::int64_t n, T factor) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, factor);
  for (std::int64_t i = 0; i < n; i += LanesOf<T>()) hn::Store(hn::Mul(hn::Load(d, s + i), by), d, s + i);
}

template <class T>
void Mask(T* s, std::int64_t keys, const T* visible, T stand_in) {
  const hn::ScalableTag<T> d;
  const auto masked = hn::Set(d, stand_in);
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    const auto limit = hn::Load(d, visible + q);
    for (std::int64_t c = 0; c < keys; ++c) {
      T* at = s + c * kPanelWidth<T> + q;
      hn::Store(hn::IfThenElse(hn::Lt(hn::Set(d, static_cast<T>(c)), limit), hn::Load(d, at), masked), d, at);
    }
  }
}

template <class T>
void Maximum(const T* HWY_RESTRICT s, std::int64_t keys, T* HWY_RESTRICT m) {
  const hn::ScalableTag<T> d;
  const auto larger = [](auto a, auto b) { return hn::IfThenElse(hn::Gt(a, b), a, b); };
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    // The order doesn't matter to a maximum: four chains wait less than one.
    const T* at = s + q;
    auto first = hn::Load(d, m + q);
    auto second = first;
    auto third = first;
    auto fourth = first;
    std::int64_t c = 0;
    for (; c + 4 <= keys; c += 4) {
      first = larger(hn::Load(d, at + (c + 0) * kPanelWidth<T>), first);
      second = larger(hn::Load(d, at + (c + 1) * kPanelWidth<T>), second);
      third = larger(hn::Load(d, at + (c + 2) * kPanelWidth<T>), third);
      fourth = larger(hn::Load(d, at + (c + 3) * kPanelWidth<T>), fourth);
    }
    for (; c < keys; ++c) first = larger(hn::Load(d, at + c * kPanelWidth<T>), first);
    hn::Store(larger(larger(first, second), larger(third, fourth)), d, m + q);
  }
}

template <class T>
void Exponentials(T* HWY_RESTRICT s, std::int64_t keys, const T* HWY_RESTRICT subtracted, T* HWY_RESTRICT sum,
                  NumberType stored) {
  const hn::ScalableTag<T> d;
  const Rounding<T> rounding(stored);
  static_assert(kPanelWidth<T> % (2 * hn::MaxLanes(d)) == 0, "two vectors of queries at a time");
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += 2 * LanesOf<T>()) {
    const auto left_reference = hn::Load(d, subtracted + q);
    const auto right_reference = hn::Load(d, subtracted + q + LanesOf<T>());
    auto left_total = hn::Zero(d);
    auto right_total = hn::Zero(d);
    for (std::int64_t c = 0; c < keys; ++c) {
      T* left = s + c * kPanelWidth<T> + q;
      T* right = left + LanesOf<T>();
      const auto left_s = hn::Load(d, left);
      const auto right_s = hn::Load(d, right);
      const auto left_p = WeightOf(d, hn::Sub(left_s, left_reference), left_s);
      const auto right_p = WeightOf(d, hn::Sub(right_s, right_reference), right_s);
      left_total = hn::Add(left_total, left_p);
      right_total = hn::Add(right_total, right_p);
      hn::Store(RoundTo(d, left_p, rounding), d, left);
      hn::Store(RoundTo(d, right_p, rounding), d, right);
    }
    hn::Store(left_total, d, sum + q);
    hn::Store(right_total, d, sum + q + LanesOf<T>());
  }
}

template <class T>
void Exponential(const T* x, std::int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < n; i += LanesOf<T>()) {
    const auto each = hn::Load(d, x + i);
    hn::Store(WeightOf(d, each, each), d, out + i);
  }
}

template <class T>
void RoundedSum(const T* p, std::int64_t keys, T* sum, NumberType stored) {
  const hn::ScalableTag<T> d;
  const Rounding<T> rounding(stored);
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    auto total = hn::Load(d, sum + q);
    for (std::int64_t c = 0; c < keys; ++c) {
      total = RoundTo(d, hn::Add(total, hn::Load(d, p + c * kPanelWidth<T> + q)), rounding);
    }
    hn::Store(total, d, sum + q);
  }
}

template <class T>
void Multiply(T* o, std::int64_t rows, const T* factor) {
  const hn::ScalableTag<T> d;
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    const auto by = hn::Load(d, factor + q);
    if (hn::AllTrue(d, hn::Eq(by, hn::Set(d, T(1))))) continue;
    for (std::int64_t x = 0; x < rows; ++x) {
      T* at = o + x * kPanelWidth<T> + q;
      hn::Store(hn::Mul(hn::Load(d, at), by), d, at);
    }
  }
}

template <class T>
void AddMultiple(const T* HWY_RESTRICT part, std::int64_t rows, const T* factor, T* HWY_RESTRICT o) {
  const hn::ScalableTag<T> d;
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    const auto by = hn::Load(d, factor + q);
    for (std::int64_t x = 0; x < rows; ++x) {
      T* at = o + x * kPanelWidth<T> + q;
      hn::Store(hn::MulAdd(hn::Load(d, part + x * kPanelWidth<T> + q), by, hn::Load(d, at)), d, at);
    }
  }
}

template <class T>
void Divide(T* o, std::int64_t rows, const T* divisor) {
  const hn::ScalableTag<T> d;
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    const auto by = hn::Load(d, divisor + q);
    for (std::int64_t x = 0; x < rows; ++x) {
      T* at = o + x * kPanelWidth<T> + q;
      const auto before = hn::Load(d, at);
      hn::Store(hn::IfThenElse(HasNoWeight(d, before), before, hn::Div(before, by)), d, at);
    }
  }
}

template <class T>
void ScoreGradient(const T* p, T* ds, std::int64_t keys, const T* delta, NumberType stored) {
  const hn::ScalableTag<T> d;
  const Rounding<T> rounding(stored);
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    const auto less = hn::Load(d, delta + q);
    for (std::int64_t c = 0; c < keys; ++c) {
      const auto weight = hn::Load(d, p + c * kPanelWidth<T> + q);
      T* at = ds + c * kPanelWidth<T> + q;
      const auto gradient = hn::Mul(weight, hn::Sub(hn::Load(d, at), less));
      hn::Store(hn::IfThenElse(HasNoWeight(d, weight), weight, RoundTo(d, gradient, rounding)), d, at);
    }
  }
}

template <class T>
void Dot(const T* a, const T* b, std::int64_t rows, T* sum) {
  const hn::ScalableTag<T> d;
  for (std::int64_t q = 0; q < kPanelWidth<T>; q += LanesOf<T>()) {
    auto total = hn::Zero(d);
    for (std::int64_t x = 0; x < rows; ++x) {
      const auto left = hn::Load(d, a + x * kPanelWidth<T> + q);
      const auto next = hn::MulAdd(left, hn::Load(d, b + x * kPanelWidth<T> + q), total);
      total = hn::IfThenElse(HasNoWeight(d, left), total, next);
    }
    hn::Store(total, d, sum + q);
  }
}

template <class T>
void Round(const T* from, std::int64_t n, T* to, NumberType stored) {
  const hn::ScalableTag<T> d;
  const Rounding<T> rounding(stored);
  std::int64_t i = 0;
  for (; i + LanesOf<T>() <= n; i += LanesOf<T>()) {
    hn::StoreU(RoundTo(d, hn::LoadU(d, from + i), rounding), d, to + i);
  }
  for (; i < n; ++i) to[i] = stored_as(stored, from[i]);
}

template <class T>
bool Copy(const T* HWY_RESTRICT from, std::int64_t n, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const auto largest = hn::Set(d, std::numeric_limits<T>::max());
  auto finite = hn::Eq(largest, largest);
  std::int64_t i = 0;
  for (; i + LanesOf<T>() <= n; i += LanesOf<T>()) {
    const auto each = hn::LoadU(d, from + i);
    finite = hn::And(finite, hn::Le(hn::Abs(each), largest));
    hn::StoreU(each, d, to + i);
  }
  bool all = hn::AllTrue(d, finite);
  for (; i < n; ++i) {
    all = all && std::isfinite(from[i]);
    to[i] = from[i];
  }
  return all;
}

template <class T>
void Pack(const T* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, T* panel) {
  for (std::int64_t x = 0; x < columns; ++x) {
    T* at = panel + x * kPanelWidth<T>;
    for (std::int64_t q = 0; q < count; ++q) at[q] = rows[q * stride + x];
    for (std::int64_t q = count; q < kPanelWidth<T>; ++q) at[q] = T(0);
  }
}

template <class T>
void Unpack(const T* panel, std::int64_t count, std::int64_t columns, T* rows, std::int64_t stride) {
  for (std::int64_t q = 0; q < count; ++q) {
    for (std::int64_t x = 0; x < columns; ++x) rows[q * stride + x] = panel[x * kPanelWidth<T> + q];
  }
}

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
