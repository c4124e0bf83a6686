// Infinities and NaN in V under a mask. A key that a row doesn't see weighs 0, and 0 · ∞ in a matrix product
// is NaN. So where a tile has masked keys, what isn't finite is taken out of it before the product, and added
// at the end to the rows that see it. Their weight is never 0, so that ∞ stays ∞ however small it is.
#pragma once

#include <cstdint>

#include "cuda/pieces/fragment_mask.cuh"
#include "cuda/pieces/swizzled_tile.cuh"

namespace flashsim {

template <class T>
__device__ inline bool is_finite(T x) {
  return fabsf(static_cast<float>(x)) < INFINITY;
}

/// Every thread of the block calls it, when the tile of V is there for all. Where there is anything, `found`,
/// in shared memory, becomes true.
template <class T, int kKeys, int kDepth, int kThreads>
__device__ inline void take_out_infinities(T* tile, bool& found) {
  constexpr int kElements = kKeys * kDepth / kThreads;
  T* const own = tile + static_cast<int>(threadIdx.x) * kPieceElements;
  bool finite = true;
#pragma unroll 1
  for (int i = 0; i < kElements / kPieceElements; ++i) {
#pragma unroll
    for (int x = 0; x < kPieceElements; ++x) {
      finite = finite && is_finite(own[i * kThreads * kPieceElements + x]);
    }
  }
  if (!__syncthreads_or(static_cast<int>(!finite))) return;
  if (threadIdx.x == 0) found = true;
#pragma unroll 1
  for (int i = 0; i < kElements; ++i) {
    T& each = tile[i * kThreads + static_cast<int>(threadIdx.x)];
    if (!is_finite(each)) each = static_cast<T>(0.0F);
  }
  __syncthreads();  // It is out for all.
}

/// A warp adds what was taken out of V [keys, columns] from key `first_key` on to its rows of O, which lie in
/// a swizzled tile from row `tile_row` on; the first of them is query `query`.
template <class T, int kDepth>
__device__ inline void add_infinities(T* tile, int tile_row, int rows, const T* v, int columns,
                                      const Sight& sight, std::int64_t query, std::int64_t first_key) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
#pragma unroll 1
    for (std::int64_t key = first_key; key < sight.of(query + row); ++key) {
#pragma unroll 1
      for (int column = lane; column < columns; column += 32) {
        const T value = v[key * columns + column];
        if (is_finite(value)) continue;
        char* const piece = reinterpret_cast<char*>(tile) +
                            SwizzledTile<kDepth>::offset(tile_row + row, column / kPieceElements);
        T& o = reinterpret_cast<T*>(piece)[column % kPieceElements];
        o = static_cast<T>(static_cast<float>(o) + static_cast<float>(value));
      }
    }
  }
}

}  // namespace flashsim
