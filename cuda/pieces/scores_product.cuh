// S = scale · Q Kᵀ, a block for every tile of 64 × 64 scores. It reads its 64 rows of Q and of K once and
// keeps nothing but the tile's sums, so Q crosses into the SMs again for every key tile, and K for every
// query tile.
#pragma once

#include "core/problem/problem.hpp"
#include "cuda/pieces/tile_product.cuh"

namespace flashsim {

/// Q: [B, H, N, d], K: [B, Hkv, Nkv, d], S: [B, H, N, Nkv]. Grid: [B, H, Tr, Tc] in one dimension.
template <class T, bool kCounts>
__global__ void __launch_bounds__(kProductThreads, 4)
    scores_product(const T* __restrict__ q, const T* __restrict__ k, T* __restrict__ s, const Problem problem,
                   float scale, bool vectors, bool fours, OwnTraffic* traffic) {
  __shared__ TurnedSlice q_slice;
  __shared__ TurnedSlice k_slice;
  const std::int64_t query_tiles = (problem.seq + kTileRows - 1) / kTileRows;
  const std::int64_t key_tiles = (problem.kv_seq + kTileRows - 1) / kTileRows;
  const std::int64_t key_tile = blockIdx.x % key_tiles;
  const std::int64_t query_tile = blockIdx.x / key_tiles % query_tiles;
  const std::int64_t head = blockIdx.x / key_tiles / query_tiles;          // of B·H
  const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);  // of B·Hkv
  const std::int64_t first_query = query_tile * kTileRows;
  const std::int64_t first_key = key_tile * kTileRows;
  const auto rows = static_cast<int>(min(problem.seq - first_query, std::int64_t{kTileRows}));
  const auto keys = static_cast<int>(min(problem.kv_seq - first_key, std::int64_t{kTileRows}));
  const auto depth = static_cast<int>(problem.head_dim);
  const T* q_tile = q + (head * problem.seq + first_query) * depth;
  const T* k_tile = k + (kv_head * problem.kv_seq + first_key) * depth;
  const ThreadPlace at = thread_place();

  ByteCount<kCounts> bytes;
  ThreadSums<1> sums{};
  for (int x = 0; x < depth; x += kSliceTerms) {
    const int terms = min(depth - x, kSliceTerms);
    load_turned(q_slice, q_tile + x, depth, rows, terms, vectors, bytes);
    load_turned(k_slice, k_tile + x, depth, keys, terms, vectors, bytes);
    __syncthreads();  // the slices are whole
    multiply_slice<false>(sums, q_slice, k_slice, at);
    __syncthreads();  // nobody needs them any more
  }
  T* s_tile = s + (head * problem.seq + first_query) * problem.kv_seq + first_key;
  store_sums(s_tile, problem.kv_seq, rows, keys, fours, sums, scale, at, bytes);
  bytes.report(traffic);
}

}  // namespace flashsim
