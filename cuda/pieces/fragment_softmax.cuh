// The online softmax on a warp's accumulators: four neighbouring lanes share a row, so that its maximum takes
// two exchanges and its sum waits for the end.
#pragma once

#include <cmath>
#include <numbers>

#include "core/problem/problem.hpp"
#include "cuda/pieces/fragment_products.cuh"
#include "cuda/pieces/online_softmax.cuh"

namespace flashsim {

/// The scale of scores, apart from its sign, in powers of two.
struct ScoreScale {
  float times_log2e;  ///< |scale| · log₂ e; 1 where the scale is 0
  float sign;         ///< −1, 0 or 1

  /// After it scores times `times_log2e` are the problem's.
  template <int kFragments, int kGroups>
  __device__ void give_sign(Accumulators<kFragments, kGroups>& s) const {
    if (sign > 0) return;
#pragma unroll
    for (auto& fragment : s) {
#pragma unroll
      for (auto& group : fragment) {
#pragma unroll
        for (float& score : group) score = sign < 0 ? -score : 0.0F;
      }
    }
  }
};

inline ScoreScale score_scale_of(const Problem& problem) {
  const double scale = problem.score_scale();
  return {.times_log2e = scale == 0 ? 1.0F : static_cast<float>(std::abs(scale) * std::numbers::log2e),
          .sign = scale == 0  ? 0.0F
                  : scale < 0 ? -1.0F
                              : 1.0F};
}

/// Of each fragment the upper and the lower row of this lane; m is in powers of two.
template <int kFragments>
struct FragmentRows {
  OnlineRow of[kFragments][2];
};

/// Calls `work(f, half)` for each of a lane's rows.
template <int kFragments, class Work>
__device__ inline void over_rows(const Work& work) {
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
    work(f, 0);
    work(f, 1);
  }
}

__device__ inline float largest_of_four_lanes(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}
__device__ inline float sum_of_four_lanes(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

/// Scores become weights, exp2(s · scale − m); l and O move to the new maxima, and l takes the weights. All
/// rows take each step together, so that one's waits are filled by another's work.
template <class Softmax, int kFragments, int kGroups, int kColumns>
__device__ inline void take_online(Accumulators<kFragments, kGroups>& s,
                                   Accumulators<kFragments, kColumns>& o, FragmentRows<kFragments>& rows,
                                   float scale) {
  float largest[kFragments][2];
  over_rows<kFragments>([&](int f, int half) {
    float& of_row = largest[f][half];
    of_row = fmaxf(s[f][0][2 * half], s[f][0][2 * half + 1]);
#pragma unroll
    for (int n = 1; n < kGroups; ++n) of_row = fmaxf(of_row, fmaxf(s[f][n][2 * half], s[f][n][2 * half + 1]));
  });
  Move moves[kFragments][2];
  over_rows<kFragments>([&](int f, int half) {
    moves[f][half] =
        rise_to<Softmax, PowersOfTwo>(rows.of[f][half], largest_of_four_lanes(largest[f][half]) * scale);
  });
  over_rows<kFragments>([&](int f, int half) {
    const Move& move = moves[f][half];
    constexpr bool kResets = Softmax::kFault == Fault::reset_per_tile;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      float(&c)[4] = o[f][n];
      c[2 * half] = kResets ? 0.0F : c[2 * half] * move.factor_o;
      c[2 * half + 1] = kResets ? 0.0F : c[2 * half + 1] * move.factor_o;
    }
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
#pragma unroll
      for (int x = 2 * half; x < 2 * half + 2; ++x) {
        s[f][n][x] = PowersOfTwo::power(fmaf(s[f][n][x], scale, -move.reference));
        sum += s[f][n][x];
      }
    }
    OnlineRow& row = rows.of[f][half];
    row.l = kResets ? sum : fmaf(row.l, move.factor_l, sum);
  });
}

/// O / l, after which each row's l is whole.
template <int kFragments, int kColumns>
__device__ inline void normalise(Accumulators<kFragments, kColumns>& o, FragmentRows<kFragments>& rows) {
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      OnlineRow& row = rows.of[f][half];
      row.l = sum_of_four_lanes(row.l);
      const float factor = is_empty(row) ? 1.0F : 1.0F / row.l;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        o[f][n][2 * half] *= factor;
        o[f][n][2 * half + 1] *= factor;
      }
    }
  }
}

}  // namespace flashsim
