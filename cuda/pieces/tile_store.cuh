// The way of a finished product from a warp's fragments to memory: through a tile in shared memory, so that
// whole pieces of 16 bytes are stored.
#pragma once

#include <cstdint>

#include "cuda/pieces/matrix_fragment.cuh"
#include "cuda/pieces/storage.cuh"
#include "cuda/pieces/swizzled_tile.cuh"

namespace flashsim {

/// Stores `factor` times the warp's 16 rows, rounded. `rows` is the warp's own place for them in a tile, a
/// multiple of 8 rows from its start; what lay there is lost. `row_at(r)` is where row r goes, or null.
/// `in_pieces` as for copy_rows.
template <int kDepth, class T, class RowAt>
__device__ inline void store_rows(const float (&c)[kDepth / 8][4], float factor, T* rows, const RowAt& row_at,
                                  int columns, bool in_pieces) {
  using Tile = SwizzledTile<kDepth>;
  char* const bytes = reinterpret_cast<char*>(rows);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kDepth / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<std::uint32_t*>(bytes + Tile::offset(lane / 4 + 8 * half, n) + 4 * (lane % 4)) =
          rounded_pair<T>(factor * c[n][2 * half], factor * c[n][2 * half + 1]);
    }
  }
  __syncwarp();
  for (int n = lane; n < 16 * Tile::kPieces; n += 32) {
    const int row = n / Tile::kPieces;
    const int piece = n % Tile::kPieces;
    T* const to = row_at(row);
    const int left = columns - piece * kPieceElements;
    if (to == nullptr || left <= 0) continue;
    const auto v = *reinterpret_cast<const Neighbours<T, kPieceElements>*>(bytes + Tile::offset(row, piece));
    if (in_pieces) {
      store_together(to + piece * kPieceElements, v);
    } else {
      for (int x = 0; x < kPieceElements && x < left; ++x) to[piece * kPieceElements + x] = v.at[x];
    }
  }
}

}  // namespace flashsim
