// The online softmax of one row (arXiv 2307.08691, section 3.1; arXiv 1805.02867), with the switches that
// break it. What each verb does stands in one place, here; core/attention has the same for the CPU.
#pragma once

#include "core/problem/switches.hpp"
#include "cuda/pieces/masking.cuh"

namespace flashsim {

/// What is switched, at compile time, so that the right kernel carries no trace of it.
template <bool kSubtractsMax, bool kRescales, Fault kFaultOf>
struct SoftmaxSwitches {
  static constexpr bool kSubtractMax = kSubtractsMax;
  static constexpr bool kRescale = kRescales;
  static constexpr Fault kFault = kFaultOf;
};
using RightSoftmax = SoftmaxSwitches<true, true, Fault::none>;

inline constexpr float kLog2OfE = 1.44269504088896340736F;

/// Powers of e: scores and maxima are as they are.
struct NaturalPowers {
  static constexpr float kLogarithmOfBase = 1;
  __device__ static float power(float x) { return expf(x); }
  __device__ static float logarithm(float x) { return logf(x); }
};

/// Powers of 2 by the special-function unit (at most 2 ulp): scores and maxima are times log₂ e.
struct PowersOfTwo {
  static constexpr float kLogarithmOfBase = 0.693147180559945309F;
  __device__ static float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
  __device__ static float logarithm(float x) { return log2f(x); }
};

/// The score of a masked key. A fault replaces −∞ by a number.
template <class Softmax>
__device__ constexpr float masked_score() {
  return Softmax::kFault == Fault::finite_mask ? kFiniteMask : -INFINITY;
}

/// A row between two key tiles. l is this thread's part of the denominator; the parts are added at the end.
struct OnlineRow {
  float m = -INFINITY;
  float l = 0;
};

/// How a tile moves a row to its new maximum.
struct Move {
  float reference;  ///< subtracted from the tile's scores
  float factor_l;   ///< of l
  float factor_o;   ///< of O
};

/// Takes the maximum of the row's scores in this tile; the row's maximum rises to it.
template <class Softmax, class Powers = NaturalPowers>
__device__ inline Move rise_to(OnlineRow& row, float tile_maximum) {
  constexpr bool kResets = Softmax::kFault == Fault::reset_per_tile;
  const float before = kResets ? -INFINITY : row.m;
  float now = fmaxf(before, tile_maximum);
  if constexpr (!Softmax::kSubtractMax) {
    if (now != -INFINITY) now = 0;  // seen something, and nothing is subtracted
  }
  row.m = now;
  // While nothing has been seen 0 is subtracted: (−∞) − (−∞) would be NaN.
  const float reference = now == -INFINITY ? 0.0F : now;
  if constexpr (kResets) return {reference, 0, 0};
  float exponent = before - reference;
  if (Softmax::kFault == Fault::inverted_rescale && before != -INFINITY) exponent = -exponent;
  const float r = Softmax::kRescale ? Powers::power(exponent) : 1.0F;
  return {reference, Softmax::kFault == Fault::rescale_o_only ? 1.0F : r,
          Softmax::kFault == Fault::rescale_l_only ? 1.0F : r};
}

/// exp(s − reference). A score of −∞ masks its key.
__device__ inline float weight_of(float s, float reference) {
  return s == -INFINITY ? kNoWeight : expf(s - reference);
}

/// Neither a score above −∞ nor NaN was seen.
__device__ inline bool is_empty(const OnlineRow& row) { return row.m == -INFINITY && row.l == 0; }

/// L = m + ln l, or −∞.
template <class Powers = NaturalPowers>
__device__ inline float logsumexp(const OnlineRow& row) {
  return is_empty(row) ? -INFINITY : Powers::kLogarithmOfBase * (row.m + Powers::logarithm(row.l));
}

}  // namespace flashsim
