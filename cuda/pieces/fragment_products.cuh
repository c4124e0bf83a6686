// The two products of attention by a warp: S = Q Kᵀ and O += P V, operands in swizzled tiles, S and O in
// registers. Fragment f of a warp is its rows 16f … 16f+15; every fragment of K or V that is loaded serves
// all of them.
#pragma once

#include <cstdint>

#include "cuda/pieces/matrix_fragment.cuh"
#include "cuda/pieces/swizzled_tile.cuh"

namespace flashsim {

/// Accumulators [fragment of rows][group of 8 columns][place].
template <int kFragments, int kGroups>
using Accumulators = float[kFragments][kGroups][4];

/// Where this lane reads an A of the rows from `row` on, the first 16 columns; load_matrices takes it.
template <int kDepth>
__device__ inline std::uint32_t fragment_address(const void* tile, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return shared_address(tile) + SwizzledTile<kDepth>::offset(row + lane % 16, lane / 16);
}

/// Fragments of K or V are loaded so many before they are multiplied: a load takes as long as a few products.
inline constexpr int kAhead = 2;

/// Calls multiply(i, b) for i = 0 … kCount − 1 with the four matrices that load(b, i) fetched kAhead calls
/// before.
template <int kCount, class Load, class Multiply>
__device__ inline void with_operands_ahead(const Load& load, const Multiply& multiply) {
  std::uint32_t b[kAhead + 1][4];
#pragma unroll
  for (int i = 0; i < kAhead && i < kCount; ++i) load(b[i], i);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (i + kAhead < kCount) load(b[(i + kAhead) % (kAhead + 1)], i + kAhead);
    multiply(i, b[i % (kAhead + 1)]);
  }
}

/// S += Q Kᵀ. `q_at` is fragment_address of the warp's first row, `k` the key tile's start.
template <class T, int kDepth, int kFragments, int kGroups>
__device__ inline void add_scores(Accumulators<kFragments, kGroups>& s, std::uint32_t q_at, std::uint32_t k) {
  using Tile = SwizzledTile<kDepth>;
  constexpr int kPairs = kGroups / 2;
  constexpr int kTerms = kDepth / kFragmentTerms;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t k_at = k + Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  std::uint32_t a[2][kFragments][4];
  const auto load_rows = [&](int term) {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      load_matrices(a[term % 2][f], Tile::further(q_at, 2 * term) + f * kFragmentRows * Tile::kRowBytes);
    }
  };
  load_rows(0);
  with_operands_ahead<kTerms * kPairs>(
      [&](std::uint32_t(&b)[4], int i) {
        load_matrices(b,
                      Tile::further(k_at, i / kPairs * 2) + i % kPairs * 2 * kFragmentKeys * Tile::kRowBytes);
      },
      [&](int i, const std::uint32_t(&b)[4]) {
        const int term = i / kPairs;
        const int pair = i % kPairs;
        if (pair == (kPairs > 2 ? kPairs - 2 : 0) && term + 1 < kTerms) load_rows(term + 1);
#pragma unroll
        for (int f = 0; f < kFragments; ++f) {
          multiply_add<T>(s[f][2 * pair], a[term % 2][f], b[0], b[1]);
          multiply_add<T>(s[f][2 * pair + 1], a[term % 2][f], b[2], b[3]);
        }
      });
}

/// The A of keys 16 `term` … +15 out of accumulators of weights, rounded to T.
template <class T, int kGroups>
__device__ inline void as_operand(std::uint32_t (&a)[4], const float (&p)[kGroups][4], int term) {
  a[0] = rounded_pair<T>(p[2 * term][0], p[2 * term][1]);
  a[1] = rounded_pair<T>(p[2 * term][2], p[2 * term][3]);
  a[2] = rounded_pair<T>(p[2 * term + 1][0], p[2 * term + 1][1]);
  a[3] = rounded_pair<T>(p[2 * term + 1][2], p[2 * term + 1][3]);
}

/// O += P V. `v` is the value tile's start.
template <class T, int kDepth, int kFragments, int kGroups>
__device__ inline void add_output(Accumulators<kFragments, kDepth / kFragmentKeys>& o,
                                  const Accumulators<kFragments, kGroups>& p, std::uint32_t v) {
  using Tile = SwizzledTile<kDepth>;
  constexpr int kPairs = kDepth / (2 * kFragmentKeys);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t v_at = v + Tile::offset(lane % 16, lane / 16);
  std::uint32_t a[kFragments][4];
  with_operands_ahead<kGroups / 2 * kPairs>(
      [&](std::uint32_t(&b)[4], int i) {
        load_turned_matrices(
            b, Tile::further(v_at, i % kPairs * 2) + i / kPairs * kFragmentTerms * Tile::kRowBytes);
      },
      [&](int i, const std::uint32_t(&b)[4]) {
        const int pair = i % kPairs;
        if (pair == 0) {
#pragma unroll
          for (int f = 0; f < kFragments; ++f) as_operand<T>(a[f], p[f], i / kPairs);
        }
#pragma unroll
        for (int f = 0; f < kFragments; ++f) {
          multiply_add<T>(o[f][2 * pair], a[f], b[0], b[1]);
          multiply_add<T>(o[f][2 * pair + 1], a[f], b[2], b[3]);
        }
      });
}

}  // namespace flashsim
