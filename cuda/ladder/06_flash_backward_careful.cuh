// NaN and infinities in the backward pass. A pair that the mask hides, or a score of −∞, weighs 0 in P and
// dS, and 0 · ∞ in a matrix product is NaN. So careful builds of the kernels give such a pair the weight −0,
// which nothing else has, and its dS is 0 whatever its dP is. And they take out what isn't finite of the
// right operands of products with P and dS, once the scores and dP are made:
//
//   dQ = dS K, dK = dSᵀ Q   A query or key that isn't finite has scores of NaN or +∞, and the whole row of P
//                           is NaN, or of −∞, and they are hidden. Nothing is lost.
//   dV = Pᵀ dO              What is seen of it is added (add_seen).
#pragma once

#include "cuda/ladder/06_flash_backward.cuh"
#include "cuda/pieces/masked_values.cuh"
#include "cuda/pieces/online_softmax.cuh"

namespace flashsim::flash_backward {

/// The weight of a hidden pair.
template <bool kCareful>
inline constexpr float kHidden = kCareful ? -0.0F : 0.0F;

__device__ inline bool is_hidden(float weight) {
  return __float_as_uint(weight) == __float_as_uint(kHidden<true>);
}

/// P of a pair: exp2(score · exponent − L). L is as `subtracted` gives it: a row that isn't there has none.
template <bool kCareful>
__device__ inline float weight_of(float score, float exponent, float lse) {
  if (kCareful && (lse == INFINITY || score * exponent == -INFINITY)) return kHidden<true>;
  return PowersOfTwo::power(fmaf(score, exponent, -lse));
}

/// dS of a pair.
template <bool kCareful>
__device__ inline float score_gradient_of(float weight, float d_p, float delta) {
  if (kCareful && is_hidden(weight)) return 0;
  return weight * (d_p - delta);
}

/// Adds what isn't finite in 8 · N rows of dO to the lane's part of dV, where P, as `gradients` has it, isn't
/// hidden. Such a weight counts as more than 0, so that ∞ stays ∞ however small it is.
template <int kDepth, class T, int M, int N>
__device__ inline void add_seen(float (&d_v)[M][kDepth / 8][4], const T* d_o, const float (&p)[M][N][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int eight = 0; eight < N; ++eight) {
#pragma unroll 1
    for (int r = 0; r < 8; ++r) {
      // The weights of this row and the lane's keys are two registers of a neighbour.
      bool seen[M][2];
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float even = __shfl_sync(0xffffffffU, p[m][eight][2 * half], lane / 4 * 4 + r / 2);
          const float odd = __shfl_sync(0xffffffffU, p[m][eight][2 * half + 1], lane / 4 * 4 + r / 2);
          seen[m][half] = !is_hidden(r % 2 == 0 ? even : odd);
        }
      }
#pragma unroll
      for (int n = 0; n < kDepth / 8; ++n) {
        const char* const piece =
            reinterpret_cast<const char*>(d_o) + SwizzledTile<kDepth>::offset(8 * eight + r, n);
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          const auto value = static_cast<float>(reinterpret_cast<const T*>(piece)[lane % 4 * 2 + x]);
          if (is_finite(value)) continue;
#pragma unroll
          for (int m = 0; m < M; ++m) {
            if (seen[m][0]) d_v[m][n][x] += value;
            if (seen[m][1]) d_v[m][n][2 + x] += value;
          }
        }
      }
    }
  }
}

}  // namespace flashsim::flash_backward
