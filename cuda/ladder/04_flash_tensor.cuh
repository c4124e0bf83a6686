// idea: 03's schedule on tensor cores: what a warp multiplies are fragments of 16 × 16 in its registers.
// what changed: fp16 and bf16 products, P goes from registers into PV, K and V arrive while products run.
// HBM traffic: as 03's: Q, O and L once; K and V once for each query tile that sees them; half the bytes.
// on-chip memory: Q_i, K_j and V_j in swizzled shared memory; S_ij, P_ij and O_i in registers.
// parallelism: a block a query tile, long ones first, two blocks an SM; a warp owns 32 rows (d 256: 16).
// limits: mma.sync, which Hopper runs slower than its warpgroup products; d ≤ 256; sm_80 and later.
#pragma once

#include <cstdint>

#include "cuda/ladder/rung.hpp"
#include "cuda/pieces/fragment_epilogue.cuh"
#include "cuda/pieces/fragment_mask.cuh"
#include "cuda/pieces/fragment_products.cuh"
#include "cuda/pieces/fragment_softmax.cuh"
#include "cuda/pieces/masked_values.cuh"
#include "cuda/pieces/swizzled_tile.cuh"

namespace flashsim::flash_tensor {

/// Blocks of kWarps warps, each with kFragments fragments of 16 query rows, on kKeys keys at a time; rows are
/// padded with zeros to kDepth columns. The compiler is to make room for kBlocks blocks on an SM.
template <int kDepthOf, int kFragmentsOf, int kWarps, int kKeysOf, int kBlocksOf, int kStagesOf>
struct Tile {
  static constexpr int kDepth = kDepthOf, kFragments = kFragmentsOf, kKeys = kKeysOf, kBlocks = kBlocksOf;
  static constexpr int kStages = kStagesOf;
  static constexpr int kWarpRows = kFragmentRows * kFragments;
  static constexpr int kRows = kWarps * kWarpRows;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kSharedBytes = 2 * kDepth * (kRows + 2 * kStages * kKeys);
};

struct Arguments {
  const void* q;
  const void* k;
  const void* v;
  void* o;
  float* lse;
  std::int64_t seq, kv_seq;
  unsigned heads, kv_heads, query_tiles;
  std::int64_t first_position;  ///< among the keys, of query 0
  int head_dim;
  bool causal;
  bool in_pieces;  ///< rows are whole pieces of 16 bytes
  ScoreScale scale;
};

template <class T, class Tile, class Softmax>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    flash(const __grid_constant__ Arguments args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kDepth = Tile::kDepth, kKeys = Tile::kKeys, kFragments = Tile::kFragments;
  T* const q = reinterpret_cast<T*>(shared);
  T* const ks = q + Tile::kRows * kDepth;
  T* const vs = ks + Tile::kStages * kKeys * kDepth;

  const unsigned head = blockIdx.x / args.query_tiles;  // of all batch entries
  const unsigned tile = args.query_tiles - 1 - blockIdx.x % args.query_tiles;
  const unsigned kv_head =
      head / args.heads * args.kv_heads + head % args.heads / (args.heads / args.kv_heads);
  const std::int64_t first_row = std::int64_t{tile} * Tile::kRows;
  const int rows_there =
      static_cast<int>(args.seq - first_row < Tile::kRows ? args.seq - first_row : Tile::kRows);
  const int columns = args.head_dim;
  const T* const head_q = static_cast<const T*>(args.q) + (head * args.seq + first_row) * columns;
  const T* const head_k = static_cast<const T*>(args.k) + kv_head * args.kv_seq * columns;
  const T* const head_v = static_cast<const T*>(args.v) + kv_head * args.kv_seq * columns;

  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Tile::kWarpRows;
  const Sight sight{.keys = args.kv_seq, .first_position = args.first_position, .causal = args.causal};
  const std::int64_t seen_by_tile = sight.of(first_row + rows_there - 1);
  const int key_tiles = static_cast<int>((seen_by_tile + kKeys - 1) / kKeys);
  const int whole_tiles = static_cast<int>(sight.of(first_row) / kKeys);  // of which every row sees every key

  const auto copy_keys = [&](T* to, const T* matrix, int j) {
    const std::int64_t first = static_cast<std::int64_t>(j) * kKeys;
    const T* const from = matrix + first * columns;
    const int there = static_cast<int>(args.kv_seq - first < kKeys ? args.kv_seq - first : kKeys);
    copy_matrix<kKeys, kDepth, Tile::kThreads>(to, from, there, columns, args.in_pieces);
  };

  FragmentRows<kFragments> rows;
  bool infinities = false;  // in values of tiles with masked keys
  float o[kFragments][kDepth / kFragmentKeys][4] = {};

  copy_matrix<Tile::kRows, kDepth, Tile::kThreads>(q, head_q, rows_there, columns, args.in_pieces);
  if (key_tiles > 0) {
    copy_keys(ks, head_k, 0);
    if constexpr (Tile::kStages > 1) copy_keys(vs, head_v, 0);
  }
  end_group();

  const std::uint32_t q_at = fragment_address<kDepth>(q, warp_row);
  for (int j = 0; j < key_tiles; ++j) {
    T* const k = ks + (Tile::kStages > 1 ? j % 2 * kKeys * kDepth : 0);
    T* const v = vs + (Tile::kStages > 1 ? j % 2 * kKeys * kDepth : 0);
    wait_for_groups<0>();
    __syncthreads();  // Q_i and K_j are there for all, and nobody reads V_j−1 any more.
    if constexpr (Tile::kStages > 1) {
      if (j + 1 < key_tiles) {
        copy_keys(ks + (j + 1) % 2 * kKeys * kDepth, head_k, j + 1);
        copy_keys(vs + (j + 1) % 2 * kKeys * kDepth, head_v, j + 1);
      }
    } else {
      copy_keys(v, head_v, j);
    }
    end_group();

    float s[kFragments][kKeys / kFragmentKeys][4] = {};
    add_scores<T, kDepth>(s, q_at, shared_address(k));

    if constexpr (Tile::kStages == 1) {
      wait_for_groups<0>();
      __syncthreads();  // V_j is there for all, and nobody reads K_j any more.
      if (j + 1 < key_tiles) copy_keys(k, head_k, j + 1);
      end_group();
    }

    args.scale.give_sign(s);
    if (j >= whole_tiles) {
      mask_fragments<Softmax>(s, sight, first_row + warp_row, std::int64_t{j} * kKeys, args.scale);
    }
    take_online<Softmax>(s, o, rows, args.scale.times_log2e);
    if (Softmax::kFault != Fault::finite_mask && args.causal && j >= whole_tiles) {
      infinities = take_out_infinities<T, kKeys, kDepth, Tile::kThreads>(v) || infinities;
    }
    add_output<T, kDepth>(o, s, shared_address(v));
  }

  wait_for_groups<0>();  // Where there was no key tile, Q_i may still be on its way.
  __syncwarp();          // The warp has read its rows of Q_i, in whose place its rows of O lie now.
  normalise(o, rows);
  place_fragments<T, kDepth>(q, warp_row, o);
  __syncwarp();
  const int warp_rows = rows_there - warp_row < Tile::kWarpRows ? rows_there - warp_row : Tile::kWarpRows;
  if (infinities) {
    add_infinities<T, kDepth>(q, warp_row, warp_rows, head_v, columns, sight, first_row + warp_row,
                              std::int64_t{whole_tiles} * kKeys);
    __syncwarp();
  }
  T* const warp_o = static_cast<T*>(args.o) + (head * args.seq + first_row + warp_row) * columns;
  store_rows<T, kDepth, Tile::kWarpRows>(
      q, warp_row, warp_rows, [&](int row) { return warp_o + row * columns; }, columns, args.in_pieces);
  store_logsumexp(args.lse + head * args.seq + first_row + warp_row, rows, warp_rows);
}

}  // namespace flashsim::flash_tensor
