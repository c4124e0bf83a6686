// The causal mask and the ragged end on a warp's accumulators of S.
#pragma once

#include <cstdint>

#include "cuda/pieces/fragment_softmax.cuh"
#include "cuda/pieces/masking.cuh"

namespace flashsim {

/// Which keys a query sees: a prefix (core/problem/mask.hpp).
struct Sight {
  std::int64_t keys;            ///< Nkv
  std::int64_t first_position;  ///< among the keys, of query 0
  bool causal;

  /// Keys on or before the diagonal, were there any number of them.
  __device__ std::int64_t to_diagonal(std::int64_t query) const {
    const std::int64_t end = query + first_position + 1;
    return end < 0 ? 0 : end;
  }
  /// Keys 0 … n−1 are visible.
  __device__ std::int64_t of(std::int64_t query) const {
    if (!causal) return keys;
    const std::int64_t end = to_diagonal(query);
    return end < keys ? end : keys;
  }
};

/// Masks the scores of the tile whose first key is `first_key`; the accumulators' first row is query `row`.
template <class Softmax, int kFragments, int kGroups>
__device__ inline void mask_fragments(Accumulators<kFragments, kGroups>& s, const Sight& sight,
                                      std::int64_t row, std::int64_t first_key, const ScoreScale& scale) {
  constexpr bool kShowsPadding = Softmax::kFault == Fault::unmasked_padding;
  constexpr std::int64_t kTileKeys = std::int64_t{kGroups} * kFragmentKeys;
  constexpr std::int64_t kAllRows = std::int64_t{kFragments} * kFragmentRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int lane_key = lane % 4 * 2;
  // In keys from this lane's first one on: where the matrix ends, and how many the lane's first row sees,
  // were there any number.
  const int there = static_cast<int>(min(sight.keys - first_key, kTileKeys)) - lane_key;
  const std::int64_t diagonal = row + sight.first_position + 1 - first_key;
  const int seen_by_first =
      static_cast<int>(sight.causal ? max(min(diagonal, kTileKeys), -kAllRows) : kTileKeys) + lane / 4 -
      lane_key;
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int of_row = seen_by_first + f * kFragmentRows + half * 8;
      // A fault lets the row see the zeros that fill up the last tile.
      const int seen = kShowsPadding ? of_row : min(of_row, there);
#pragma unroll
      for (int n = 0; n < kGroups; ++n) {
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          const int key = n * kFragmentKeys + x;
          float& score = s[f][n][2 * half + x];
          if constexpr (Softmax::kFault == Fault::finite_mask) {
            if (key >= seen) score = key < there ? kFiniteMask * kLog2OfE / scale.times_log2e : -INFINITY;
          } else {
            if (key >= seen) score = -INFINITY;
          }
        }
      }
    }
  }
}

}  // namespace flashsim
