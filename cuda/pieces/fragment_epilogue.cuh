// Accumulators leave for memory: by way of shared memory, so that rows go out in pieces of 16 bytes.
#pragma once

#include <cstdint>

#include "cuda/pieces/fragment_products.cuh"
#include "cuda/pieces/fragment_softmax.cuh"

namespace flashsim {

/// Rounds the warp's accumulators to T and puts them into the rows from `row` on of a swizzled tile.
template <class T, int kDepth, int kFragments>
__device__ inline void place_fragments(T* tile, int row,
                                       const Accumulators<kFragments, kDepth / kFragmentKeys>& c) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  char* const bytes = reinterpret_cast<char*>(tile);
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < kDepth / kFragmentKeys; ++n) {
        const int of_row = row + f * kFragmentRows + half * 8 + lane / 4;
        *reinterpret_cast<std::uint32_t*>(bytes + SwizzledTile<kDepth>::offset(of_row, n) + lane % 4 * 4) =
            rounded_pair<T>(c[f][n][2 * half], c[f][n][2 * half + 1]);
      }
    }
  }
}

/// A warp stores the first `rows` of the kRows rows from `row` on; `row_at(r)` is where row r of them goes.
template <class T, int kDepth, int kRows, class RowAt>
__device__ inline void store_rows(const T* tile, int row, int rows, const RowAt& row_at, int columns,
                                  bool in_pieces) {
  using Tile = SwizzledTile<kDepth>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const char* const bytes = reinterpret_cast<const char*>(tile);
  if (in_pieces) {
#pragma unroll 4
    for (int n = lane; n < kRows * Tile::kPieces; n += 32) {
      const int r = n / Tile::kPieces;
      const int piece = n % Tile::kPieces;
      if (r >= rows || piece * kPieceElements >= columns) continue;
      *reinterpret_cast<uint4*>(row_at(r) + piece * kPieceElements) =
          *reinterpret_cast<const uint4*>(bytes + Tile::offset(row + r, piece));
    }
  } else {
#pragma unroll 1
    for (int n = lane; n < rows * columns; n += 32) {
      const int r = n / columns;
      const int column = n % columns;
      const char* const piece = bytes + Tile::offset(row + r, column / kPieceElements);
      row_at(r)[column] = reinterpret_cast<const T*>(piece)[column % kPieceElements];
    }
  }
}

/// L of the first `rows` rows of a warp, after normalise(), in one store: a sector of 32 bytes crosses once
/// for each store that touches it, and rows begin where they will.
template <int kFragments>
__device__ inline void store_logsumexp(float* to, const FragmentRows<kFragments>& rows_of, int rows) {
  static_assert(kFragments * kFragmentRows <= 32, "a lane has a row");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float own = 0;
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float of_eight_rows =
          __shfl_sync(0xffffffffU, logsumexp<PowersOfTwo>(rows_of.of[f][half]), lane % 8 * 4);
      if (lane / 8 == 2 * f + half) own = of_eight_rows;
    }
  }
  if (lane < kFragments * kFragmentRows && lane < rows) to[lane] = own;
}

}  // namespace flashsim
