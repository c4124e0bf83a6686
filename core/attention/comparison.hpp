// A result held against the truth: the largest error, where it is, and how large rounding may make it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/attention/truth.hpp"

namespace flashsim {

/// The place of an element of a tensor [B, H, N, d].
struct Place {
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

struct Comparison {
  /// Largest |result − truth|; infinite or NaN where they differ in what is infinite or NaN. Two NaNs
  /// agree, and so do two equal infinities.
  double max_abs = 0;
  Place at;  ///< where that is
  bool agrees_within(double tolerance) const { return max_abs <= tolerance; }
};

/// Compares tensors of one shape. NaN against a number is the worst error there is.
template <class T>
Comparison compare(const Tensor4<T>& result, const Tensor4<double>& truth);

/// How far rounding alone may move an element of O computed in T, to first order:
///
///   ε · max|V| · (2 (d + 2) A + 4 Nkv + 16)
///
/// with ε the unit roundoff of T and A the largest score in absolute terms, scale · Σ|q·k|. A score is off by
/// at most (d + 2) ε A, and enters numerator and denominator; given scores are off by nothing, and that term
/// is absent. Subtracting the maximum costs ε x in the exponent, which exp(−x) damps to ε/e at most; with
/// the additions and the rescaling that is under 2 Nkv ε in either sum; exp, division and products are the
/// rest. For L the same without max|V|, and ε (largest score + ln Nkv) for its own rounding.
struct Tolerance {
  double output = 0;
  double lse = 0;
  double epsilon = 0;  ///< 2⁻²⁴ or 2⁻⁵³
  double largest_score = 0;
  double largest_value = 0;
  /// Rounding alone could explain any result: the scores are too large for T to tell one from another.
  [[nodiscard]] bool says_nothing() const { return output >= largest_value && largest_value > 0; }
};
template <class T>
Tolerance tolerance_of(const Problem& problem, const Truth& truth, bool scores_given);

}  // namespace flashsim
