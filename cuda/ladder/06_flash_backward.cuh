// idea: FlashAttention-2, Algorithm 2: P again from Q, K and L, so that nothing of size N² was ever stored.
// what changed: five products for two; a key tile stays put while query tiles pass by and add to dQ.
// HBM traffic: K, V, dK, dV once; Q, dO, L, D and dQ's float32 sum for each key tile that sees them.
// on-chip memory: K_j, V_j, two of Q_i, dO_i and dS_ij in shared memory, 161 KiB at d 128; else registers.
// parallelism: a block a key tile; a warp owns 16 of its keys (d 64: 32); only dQ needs the others' dS.
// limits: d ≤ 128; dQ's last bits are chance, or S, P and dP are computed twice (deterministic).
#pragma once

#include <cstdint>

#include "cuda/pieces/online_softmax.cuh"
#include "cuda/pieces/packed_rows.cuh"
#include "cuda/pieces/storage.cuh"

namespace flashsim::flash_backward {

/// Q, O, dO, dQ: [B, H, N, d], K, V, dK, dV: [B, Hkv, Nkv, d], L, D: [B, H, N].
template <class T>
struct Arguments {
  const T* q;
  const T* k;
  const T* v;
  const T* o;
  const T* d_o;
  const float* lse;
  float* deltas;     ///< D
  float* query_sum;  ///< of dQ without the scale (place_in_sum); null where it isn't added in memory
  T* d_q;
  T* d_k;
  T* d_v;
  std::int64_t seq, kv_seq;
  std::int64_t rows;   ///< G · N, of a key/value head
  unsigned tiles;      ///< of a head, in the kernel that is launched
  unsigned sum_tiles;  ///< of query_sum, all heads; 0 where there is none
  unsigned group;      ///< G
  int columns;         ///< d
  bool in_pieces;      ///< rows of every tensor start at multiples of 16 bytes
  bool causal;
  std::int64_t first_position;  ///< among the keys, of query 0
  float scale;
};

/// Queries of a tile: packed rows, in every kernel of 06.
inline constexpr int kTileRows = 64;

/// Where a lane's four numbers of a fragment of dQ lie in its tile of the sum, [B, Hkv, tiles, 64, 64 or
/// 128]: fragment by fragment, so that a warp adds to 512 bytes at once. Row by row they would be sixteen
/// pieces of 32 bytes.
template <int kDepth>
__device__ inline int place_in_sum(int rows16, int columns8, int lane) {
  return ((rows16 * (kDepth / 8) + columns8) * 32 + lane) * 4;
}

/// So many of the kKeys keys from `first_key` on does a query see; a key ≥ it is masked.
template <int kKeys, class T>
__device__ inline int keys_seen(const Arguments<T>& args, std::int64_t query, std::int64_t first_key) {
  const std::int64_t there = args.kv_seq - first_key;
  const std::int64_t diagonal = query + args.first_position + 1 - first_key;
  const std::int64_t seen = args.causal && diagonal < there ? diagonal : there;
  return seen < 0 ? 0 : seen < kKeys ? static_cast<int>(seen) : kKeys;
}

/// L in powers of two, as it is subtracted. A row that saw no key, or isn't there, gets +∞, which leaves it
/// no weight: exp2(s − ∞) = 0.
__device__ inline float subtracted(float lse) { return lse == -INFINITY ? INFINITY : lse * kLog2OfE; }
__device__ inline float exponent_of_scores(float scale) { return scale * kLog2OfE; }

}  // namespace flashsim::flash_backward
