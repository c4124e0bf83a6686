// O = P V, a block for 64 rows of queries and all their columns. It reads its rows of P once and V once, so V
// crosses into the SMs again for every query tile. A key that weighs nothing is masked, and what its V holds
// must not come through: while a slice of V is finite, −0 times it is nothing; in a slice that holds NaN or
// an infinity such terms are left out.
#pragma once

#include "core/problem/problem.hpp"
#include "cuda/pieces/tile_product.cuh"

namespace flashsim {

/// Blocks that share an SM: as many as leave each thread the registers for its sums and for what it loads,
/// and for its counts.
template <class T, int kGroups, bool kCounts>
constexpr int blocks_per_sm() {
  const int blocks = kGroups == 1 ? 4 : kGroups == 2 && sizeof(T) == 2 ? 3 : 2;
  return kCounts ? blocks - 1 : blocks;
}

/// P: [B, H, N, Nkv], V: [B, Hkv, Nkv, d], O: [B, H, N, d] with d ≤ 64 · kGroups. Grid: [B, H, Tr] in one
/// dimension. Where `wanted` is given, nothing is done unless it is set.
template <class T, int kGroups, bool kCounts>
__global__ void __launch_bounds__(kProductThreads, blocks_per_sm<T, kGroups, kCounts>())
    output_product(const T* __restrict__ p, const T* __restrict__ v, T* __restrict__ o, const Problem problem,
                   bool p_vectors, bool v_vectors, bool fours, const int* wanted, OwnTraffic* traffic) {
  if (wanted != nullptr && *wanted == 0) return;
  __shared__ TurnedSlice p_slice;
  __shared__ alignas(kVectorBytes) float v_slice[kSliceTerms][kGroups * kGroupColumns];
  const std::int64_t query_tiles = (problem.seq + kTileRows - 1) / kTileRows;
  const std::int64_t head = blockIdx.x / query_tiles;                      // of B·H
  const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);  // of B·Hkv
  const std::int64_t first_query = blockIdx.x % query_tiles * kTileRows;
  const auto rows = static_cast<int>(min(problem.seq - first_query, std::int64_t{kTileRows}));
  const auto depth = static_cast<int>(problem.head_dim);
  const T* p_rows = p + (head * problem.seq + first_query) * problem.kv_seq;
  const T* v_rows = v + kv_head * problem.kv_seq * depth;
  const ThreadPlace at = thread_place();

  ByteCount<kCounts> bytes;
  ThreadSums<kGroups> sums{};
  for (std::int64_t key = 0; key < problem.kv_seq; key += kSliceTerms) {
    const auto keys = static_cast<int>(min(problem.kv_seq - key, std::int64_t{kSliceTerms}));
    load_turned(p_slice, p_rows + key, problem.kv_seq, rows, keys, p_vectors, bytes);
    const bool finite = load_straight(v_slice, v_rows + key * depth, depth, keys, v_vectors, bytes);
    if (__syncthreads_and(finite)) {  // the slices are whole
      multiply_slice<false>(sums, p_slice, v_slice, at);
    } else {
      multiply_slice<true>(sums, p_slice, v_slice, at);
    }
    __syncthreads();  // nobody needs them any more
  }
  store_sums(o + (head * problem.seq + first_query) * depth, depth, rows, depth, fours, sums, 1.0f, at,
             bytes);
  bytes.report(traffic);
}

}  // namespace flashsim
