// The arithmetic of one tile, one function for each verb of the walks, in T = float or double.
//
// The state of a row is (m, l, O): the running maximum, the denominator and the unnormalised numerator.
// m = −∞ means that no score above −∞ has been seen. With the maximum switched off m is 0 from the first
// score on, which makes p = exp(s) and r = 1 without another word.
//
// Conventions: a key that is masked, by the mask or by a score of −∞, is skipped and not multiplied by
// zero, so that a NaN behind the mask stays there; its weight is −0, which no exponential gives. A row
// without a score above −∞ gives O = 0 and L = −∞.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/switches.hpp"
#include "core/base/tensor.hpp"
#include "core/problem/mask.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

/// The weight of a key that takes no part: zero to every sum, and told from an exponential that became 0.
template <class T>
inline constexpr T kNoWeight = T(-0.0);

template <class T>
bool takes_part(T weight) {
  return weight != T(0) || !std::signbit(weight);
}

/// exp(s − subtracted), or no weight where s is −∞.
template <class T>
T weight_of(T s, T subtracted) {
  return s == kMinusInfinity<T> ? kNoWeight<T> : std::exp(s - subtracted);
}

/// The statistics of the rows of one query tile.
template <class T>
struct RowStatistics {
  std::vector<T> m, m_before, row_sum, r, l, l_before, logsumexp;
  explicit RowStatistics(std::int64_t rows) {
    for (auto* each : {&m, &m_before, &row_sum, &r, &l, &l_before, &logsumexp}) {
      each->resize(static_cast<std::size_t>(rows));
    }
  }
};

/// The keys of `step` that its row number `r` sees, as a length from step.keys.begin.
inline std::int64_t visible_in_tile(const Problem& problem, const Step& step, std::int64_t r) {
  const std::int64_t visible = visible_keys(problem, step.rows.begin + r) - step.keys.begin;
  return std::clamp<std::int64_t>(visible, 0, step.keys.size());
}

/// s = factor · q kᵀ. q: [rows, d], k: [keys, d], s: [rows, keys].
template <class T>
void tile_scores(MatrixView<const T> q, MatrixView<const T> k, T factor, MatrixView<T> s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t c = 0; c < s.columns; ++c) {
      T sum = 0;
      for (std::int64_t x = 0; x < q.columns; ++x) sum += q(r, x) * k(c, x);
      s(r, c) = factor * sum;
    }
  }
}

/// s ← −∞ where the key isn't visible.
template <class T>
void tile_mask(const Problem& problem, const Step& step, MatrixView<T> s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    std::fill(s.row(r) + visible_in_tile(problem, step, r), s.row(r) + s.columns, kMinusInfinity<T>);
  }
}

/// The maximum to subtract once the scores s[0 … n) have been seen. NaN is passed over here; it comes
/// back as exp(NaN).
template <class T>
T next_maximum(const T* s, std::int64_t n, T before, Switches switches) {
  T maximum = before;
  for (std::int64_t c = 0; c < n; ++c) maximum = s[c] > maximum ? s[c] : maximum;
  return switches.subtract_max || maximum == kMinusInfinity<T> ? maximum : T(0);
}

/// (−∞) − (−∞) is NaN: while nothing has been seen, 0 is subtracted instead, and exp(−∞) is 0.
template <class T>
T reference(T m) {
  return m == kMinusInfinity<T> ? T(0) : m;
}

/// m′ = max(m, max s), p = exp(s − m′), row_sum = Σ p. Masked entries of s are −∞.
template <class T>
void tile_online_softmax(MatrixView<const T> s, Switches switches, MatrixView<T> p, RowStatistics<T>& rows) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    rows.m_before[at] = rows.m[at];
    rows.m[at] = next_maximum(s.row(r), s.columns, rows.m[at], switches);
    const T subtracted = reference(rows.m[at]);
    T sum = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) {
      p(r, c) = weight_of(s(r, c), subtracted);
      sum += p(r, c);
    }
    rows.row_sum[at] = sum;
  }
}

/// r = exp(m − m′), l ← r l + row_sum, O ← r O. `normalised`: O has been divided by l (flash1 keeps it
/// so in HBM) and is multiplied by it on the way.
template <class T>
void tile_rescale(Switches switches, bool normalised, MatrixView<T> o, RowStatistics<T>& rows) {
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    rows.r[at] = switches.rescale ? std::exp(rows.m_before[at] - reference(rows.m[at])) : T(1);
    rows.l_before[at] = rows.l[at];
    const T factor = normalised ? rows.r[at] * rows.l[at] : rows.r[at];
    rows.l[at] = rows.r[at] * rows.l[at] + rows.row_sum[at];
    for (std::int64_t x = 0; x < o.columns; ++x) o(r, x) *= factor;
  }
}

/// O ← O + p v over the keys that take part. p: [rows, keys], v: [keys, d], o: [rows, d].
template <class T>
void tile_accumulate(MatrixView<const T> p, MatrixView<const T> v, MatrixView<T> o) {
  for (std::int64_t r = 0; r < o.rows; ++r) {
    for (std::int64_t c = 0; c < p.columns; ++c) {
      if (!takes_part(p(r, c))) continue;
      for (std::int64_t x = 0; x < o.columns; ++x) o(r, x) += p(r, c) * v(c, x);
    }
  }
}

/// No score above −∞ was seen, and no NaN.
template <class T>
bool is_empty_row(T m, T l) {
  return m == kMinusInfinity<T> && l == T(0);
}

/// L = m + ln l.
template <class T>
T logsumexp(T m, T l) {
  return is_empty_row(m, l) ? kMinusInfinity<T> : m + std::log(l);
}

/// O ← O / l and L = m + ln l.
template <class T>
void tile_finish(MatrixView<T> o, RowStatistics<T>& rows) {
  for (std::int64_t r = 0; r < o.rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    rows.logsumexp[at] = logsumexp(rows.m[at], rows.l[at]);
    const bool empty = is_empty_row(rows.m[at], rows.l[at]);
    for (std::int64_t x = 0; x < o.columns; ++x) o(r, x) = empty ? T(0) : o(r, x) / rows.l[at];
  }
}

/// p = softmax(s) over whole rows; leaves m, l and L in `rows`.
template <class T>
void row_softmax(MatrixView<const T> s, Switches switches, MatrixView<T> p, RowStatistics<T>& rows) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const T m = next_maximum(s.row(r), s.columns, kMinusInfinity<T>, switches);
    T l = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) {
      p(r, c) = weight_of(s(r, c), reference(m));
      l += p(r, c);
    }
    for (std::int64_t c = 0; c < s.columns; ++c) p(r, c) = is_empty_row(m, l) ? kNoWeight<T> : p(r, c) / l;
    rows.m[at] = m;
    rows.l[at] = l;
    rows.logsumexp[at] = logsumexp(m, l);
  }
}

}  // namespace flashsim
