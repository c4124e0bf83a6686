// idea: 03's schedule on tensor cores: what a warp multiplies are fragments of 16 × 16 in its registers.
// what changed: fp16 and bf16 products, P goes from registers into PV, K and V arrive while products run.
// HBM traffic: as 03's: Q, O and L once; K and V once for each query tile that sees them; half the bytes.
// on-chip memory: Q_i, K_j and V_j in swizzled shared memory; S_ij, P_ij and O_i in registers.
// parallelism: a block a query tile, the longest of all heads first; a warp owns 32 rows (d 256: 16).
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
/// padded with zeros to kDepth columns. The compiler is to make room for kBlocks blocks on an SM. K and V
/// have kStages places each in shared memory: with two, a tile arrives while the one before is worked on.
template <int kDepthOf, int kFragmentsOf, int kWarps, int kKeysOf, int kBlocksOf, int kStagesOf>
struct Tile {
  static constexpr int kDepth = kDepthOf, kFragments = kFragmentsOf, kKeys = kKeysOf, kBlocks = kBlocksOf;
  static constexpr int kStages = kStagesOf;
  /// V is searched for infinities before S is there; at d 128 after, where the compiler has registers for it.
  static constexpr bool kLooksFirst = kStages > 1 && kDepth < 128;
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

/// What a block works on. It lies in shared memory, because registers are for O and S.
template <class T>
struct Block {
  const T* k;  ///< of its head, key 0
  const T* v;
  std::int64_t first_row;
  std::int64_t row_of_all;  ///< the first row's number among the rows of all heads
  int rows;                 ///< that are there
  int key_tiles;            ///< that its rows see
  int whole_tiles;          ///< of which every row sees every key: the first so many
  bool infinities;          ///< were taken out of values, in tiles with masked keys
};

template <class T, class Tile>
__device__ inline Block<T> block_of(const Arguments& args, const Sight& sight) {
  const unsigned all_heads = gridDim.x / args.query_tiles;
  // Under a mask the longest tiles of all heads go first, so that short ones fill the gaps at the end;
  // without one a head's tiles follow each other, and find its K and V in the L2.
  const unsigned head = args.causal ? blockIdx.x % all_heads : blockIdx.x / args.query_tiles;
  const unsigned tile =
      args.causal ? args.query_tiles - 1 - blockIdx.x / all_heads : blockIdx.x % args.query_tiles;
  const unsigned kv_head =
      head / args.heads * args.kv_heads + head % args.heads / (args.heads / args.kv_heads);
  const std::int64_t first_row = std::int64_t{tile} * Tile::kRows;
  const auto rows = static_cast<int>(min(args.seq - first_row, std::int64_t{Tile::kRows}));
  const std::int64_t keys = kv_head * args.kv_seq * args.head_dim;
  return {.k = static_cast<const T*>(args.k) + keys,
          .v = static_cast<const T*>(args.v) + keys,
          .first_row = first_row,
          .row_of_all = head * args.seq + first_row,
          .rows = rows,
          .key_tiles = static_cast<int>((sight.of(first_row + rows - 1) + Tile::kKeys - 1) / Tile::kKeys),
          .whole_tiles = static_cast<int>(sight.of(first_row) / Tile::kKeys),
          .infinities = false};
}

template <class T, class Tile, class Softmax>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    flash(const __grid_constant__ Arguments args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ Block<T> block;
  constexpr int kDepth = Tile::kDepth, kKeys = Tile::kKeys, kFragments = Tile::kFragments;
  T* const q = reinterpret_cast<T*>(shared);
  T* const ks = q + Tile::kRows * kDepth;
  T* const vs = ks + Tile::kStages * kKeys * kDepth;
  const int columns = args.head_dim;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Tile::kWarpRows;
  const Sight sight{.keys = args.kv_seq, .first_position = args.first_position, .causal = args.causal};
  if (threadIdx.x == 0) block = block_of<T, Tile>(args, sight);
  __syncthreads();

  const auto copy_keys = [&](T* to, const T* matrix, int j) {
    const std::int64_t first = std::int64_t{j} * kKeys;
    copy_matrix<kKeys, kDepth, Tile::kThreads>(
        to, matrix + first * columns, static_cast<int>(min(args.kv_seq - first, std::int64_t{kKeys})),
        columns, args.in_pieces);
  };
  copy_matrix<Tile::kRows, kDepth, Tile::kThreads>(
      q, static_cast<const T*>(args.q) + block.row_of_all * columns, block.rows, columns, args.in_pieces);
  if (block.key_tiles > 0) {
    copy_keys(ks, block.k, 0);
    if constexpr (Tile::kStages > 1) copy_keys(vs, block.v, 0);
  }
  end_group();

  FragmentRows<kFragments> rows;
  float o[kFragments][kDepth / kFragmentKeys][4] = {};
  const auto may_hide_values = [&](int j) {
    return Softmax::kFault != Fault::finite_mask && args.causal && j >= block.whole_tiles;
  };
  const std::uint32_t q_at = fragment_address<kDepth>(q, warp_row);
#pragma unroll 1
  for (int j = 0; j < block.key_tiles; ++j) {
    T* const k = ks + (Tile::kStages > 1 ? j % 2 * kKeys * kDepth : 0);
    T* const v = vs + (Tile::kStages > 1 ? j % 2 * kKeys * kDepth : 0);
    wait_for_groups<0>();
    __syncthreads();  // Q_i and K_j are there for all, and nobody reads V_j−1 any more.
    if constexpr (Tile::kStages > 1) {
      if (j + 1 < block.key_tiles) {
        copy_keys(ks + (j + 1) % 2 * kKeys * kDepth, block.k, j + 1);
        copy_keys(vs + (j + 1) % 2 * kKeys * kDepth, block.v, j + 1);
      }
    } else {
      copy_keys(v, block.v, j);
    }
    end_group();
    if (Tile::kLooksFirst && may_hide_values(j)) {
      take_out_infinities<T, kKeys, kDepth, Tile::kThreads>(v, block.infinities);
    }

    float s[kFragments][kKeys / kFragmentKeys][4] = {};
    add_scores<T, kDepth>(s, q_at, shared_address(k));

    if constexpr (Tile::kStages == 1) {
      wait_for_groups<0>();
      __syncthreads();  // V_j is there for all, and nobody reads K_j any more.
      if (j + 1 < block.key_tiles) copy_keys(k, block.k, j + 1);
      end_group();
    }

    args.scale.give_sign(s);
    if (j >= block.whole_tiles) {
      mask_fragments<Softmax>(s, sight, block.first_row + warp_row, std::int64_t{j} * kKeys, args.scale);
    }
    take_online<Softmax>(s, o, rows, args.scale.times_log2e);
    if (!Tile::kLooksFirst && may_hide_values(j)) {
      take_out_infinities<T, kKeys, kDepth, Tile::kThreads>(v, block.infinities);
    }
    add_output<T, kDepth>(o, s, shared_address(v));
  }

  if (block.key_tiles == 0) {
    wait_for_groups<0>();
    __syncthreads();  // Q_i, of which nothing was waited for, comes no more.
  }
  __syncwarp();  // The warp has read its rows of Q_i, in whose place its rows of O lie now.
  normalise(o, rows);
  place_fragments<T, kDepth>(q, warp_row, o);
  __syncwarp();
  const int warp_rows = min(block.rows - warp_row, Tile::kWarpRows);
  if (block.infinities) {
    add_infinities<T, kDepth>(q, warp_row, warp_rows, block.v, columns, sight, block.first_row + warp_row,
                              std::int64_t{block.whole_tiles} * kKeys);
    __syncwarp();
  }
  const std::int64_t row_of_all = block.row_of_all + warp_row;
  T* const warp_o = static_cast<T*>(args.o) + row_of_all * columns;
  store_rows<T, kDepth, Tile::kWarpRows>(
      q, warp_row, warp_rows, [&](int row) { return warp_o + row * columns; }, columns, args.in_pieces);
  store_logsumexp(args.lse + row_of_all, rows, warp_rows);
}

}  // namespace flashsim::flash_tensor
