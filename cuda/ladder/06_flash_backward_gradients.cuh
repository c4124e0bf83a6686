// dK and dV of a key tile, which stay in registers while the query tiles that see it pass by; and what the
// tile adds to dQ. Everything is turned: a warp has the rows of Sᵀ and dPᵀ that belong to its keys, and so Pᵀ
// and dSᵀ are the left operands of dV and dK as they stand. dQ alone needs the other warps' part of dS.
//
// A careful build is for inputs that hold NaN or infinities (06_flash_backward_careful.cuh).
#pragma once

#include <cstdint>

#include "cuda/ladder/06_flash_backward.cuh"
#include "cuda/ladder/06_flash_backward_careful.cuh"
#include "cuda/ladder/06_flash_backward_kernels.hpp"
#include "cuda/pieces/memory_sum.cuh"
#include "cuda/pieces/tile_operands.cuh"
#include "cuda/pieces/tile_store.cuh"

namespace flashsim::flash_backward {

/// kRows queries and kKeys keys, of which a warp has its share; its scores are computed kPart queries at
/// once.
template <int kDepthOf, int kRowsOf, int kKeysOf, int kWarps, int kPartOf>
struct GradientTile {
  static constexpr int kDepth = kDepthOf, kRows = kRowsOf, kKeys = kKeysOf, kPart = kPartOf;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpKeys = kKeys / kWarps;
  static constexpr int kKeyFragments = kWarpKeys / 16;
  /// Of dQ a warp has 32 rows by so many columns.
  static constexpr int kColumnWarps = kWarps / (kRows / 32);
  static constexpr int kWarpColumns = kDepth / kColumnWarps;
  static constexpr int kKeyBytes = 2 * kKeys * kDepth;
  static constexpr int kRowBytes = 2 * kRows * kDepth;
  static constexpr int kScoreBytes = 2 * kKeys * kRows;
  /// K, V, and two of Q, of dO, of dSᵀ, of L and of D.
  static constexpr int kSharedBytes = 2 * kKeyBytes + 4 * kRowBytes + 2 * kScoreBytes + 4 * 4 * kRows;
  static_assert(kThreads >= 2 * kRows, "a thread has one number of L or D");
  static_assert(kWarpColumns % 16 == 0, "an ldmatrix brings sixteen columns");
};

/// S of a tile to P, and dP to dS. A lane has of each fragment the keys l/4 and l/4 + 8, and the queries
/// 2(l%4) and the next.
template <bool kCareful, int M, int N>
__device__ inline void weights(float (&s)[M][N][4], const float* lse, float exponent) {
  const int lane_query = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + lane_query);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        s[m][n][x] = weight_of<kCareful>(s[m][n][x], exponent, x % 2 == 0 ? l.x : l.y);
      }
    }
  }
}

template <bool kCareful, int M, int N>
__device__ inline void score_gradient(float (&d_p)[M][N][4], const float (&p)[M][N][4], const float* deltas) {
  const int lane_query = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float2 d = *reinterpret_cast<const float2*>(deltas + 8 * n + lane_query);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        d_p[m][n][x] = score_gradient_of<kCareful>(p[m][n][x], d_p[m][n][x], x % 2 == 0 ? d.x : d.y);
      }
    }
  }
}

/// What a block works on. It lies in shared memory, because registers are for dK and dV.
struct GradientBlock {
  std::int64_t head;       ///< of keys and values, of all batch entries
  std::int64_t first_key;  ///< of the key tile
  std::int64_t head_keys;  ///< rows of K before this head
  std::int64_t head_rows;  ///< rows of Q before this group
  int first_tile;          ///< of the packed rows, that sees a key of the tile
  int query_tiles;
};

template <class Tile, class T>
__device__ inline GradientBlock gradient_block(const Arguments<T>& args) {
  // Under a causal mask the first keys are seen by most queries: the longest blocks of all heads come first.
  const unsigned heads = gridDim.x / args.tiles;
  const std::int64_t head = args.causal ? blockIdx.x % heads : blockIdx.x / args.tiles;
  const std::int64_t first_key =
      std::int64_t{args.causal ? blockIdx.x / heads : blockIdx.x % args.tiles} * Tile::kKeys;
  // The first query that sees a key of the tile.
  const std::int64_t skipped = first_key - args.first_position;
  const std::int64_t first_query = !args.causal || skipped < 0 ? 0 : skipped < args.seq ? skipped : args.seq;
  const int query_tiles = static_cast<int>((args.rows + Tile::kRows - 1) / Tile::kRows);
  return {.head = head,
          .first_key = first_key,
          .head_keys = head * args.kv_seq,
          .head_rows = head * args.rows,
          .first_tile = first_query == args.seq ? query_tiles
                                                : static_cast<int>(first_query * args.group / Tile::kRows),
          .query_tiles = query_tiles};
}

template <class T, class Tile, bool kSums, bool kCareful>
__global__ void __launch_bounds__(Tile::kThreads) gradients(const Arguments<T> args) {
  constexpr int kDepth = Tile::kDepth;
  constexpr int kRows = Tile::kRows;
  constexpr int kKeys = Tile::kKeys;
  constexpr int kM = Tile::kKeyFragments;
  constexpr int kN = Tile::kPart / 8;
  extern __shared__ __align__(1024) char shared_memory[];
  T* const k = reinterpret_cast<T*>(shared_memory);
  T* const v = k + kKeys * kDepth;
  T* const q = v + kKeys * kDepth;        // two of them
  T* const d_o = q + 2 * kRows * kDepth;  // likewise
  T* const d_s = d_o + 2 * kRows * kDepth;
  float* const of_rows = reinterpret_cast<float*>(d_s + 2 * kKeys * kRows);  // L and D

  __shared__ GradientBlock block;
  __shared__ bool k_changed;  // careful: what isn't finite was taken out of it
  if (threadIdx.x == 0) {
    block = gradient_block<Tile>(args);
    if constexpr (kCareful) k_changed = false;
  }
  __syncthreads();
  const std::int64_t& first_key = block.first_key;
  const std::int64_t& head_keys = block.head_keys;
  const std::int64_t& head_rows = block.head_rows;
  const int& first_tile = block.first_tile;
  const int& query_tiles = block.query_tiles;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;

  const auto rows_of = [&](int tile) {
    return PackedRows::from(std::int64_t{tile} * kRows, args.seq, args.group);
  };
  const auto load_rows = [&](T* to, const T* from, const PackedRows& rows) {
    const auto row_at = [&](int row) {
      const PackedRow at = rows[row];
      const bool there = at.query < args.seq;
      return MemoryRow<T>{from + (head_rows + (there ? at.place : 0)) * args.columns, there};
    };
    copy_rows<kRows, kDepth, Tile::kThreads>(to, row_at, args.columns, args.in_pieces);
  };
  const auto load_keys = [&](T* to, const T* from) {
    const auto row_at = [&](int row) {
      const bool there = first_key + row < args.kv_seq;
      return MemoryRow<T>{from + (head_keys + (there ? first_key + row : 0)) * args.columns, there};
    };
    copy_rows<kKeys, kDepth, Tile::kThreads>(to, row_at, args.columns, args.in_pieces);
  };
  // The first kRows threads have L, the next kRows D.
  const auto of_row = [&](const PackedRows& rows) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread >= 2 * kRows) return 0.0F;
    const PackedRow at = rows[thread % kRows];
    const bool there = at.query < args.seq;
    if (thread >= kRows) return there ? args.deltas[head_rows + at.place] : 0.0F;
    return there ? subtracted(args.lse[head_rows + at.place]) : INFINITY;
  };
  const auto keep_of_row = [&](int slot, float value) {
    if (threadIdx.x < 2 * kRows) of_rows[slot * 2 * kRows + threadIdx.x] = value;
  };

  float d_k[kM][kDepth / 8][4] = {};
  float d_v[kM][kDepth / 8][4] = {};

  const auto rows_of_warp = [&](const T* tile) {
    return shared_address(tile) + rows16<kDepth>(static_cast<int>(followed_anew(threadIdx.x)) / 32 * kM);
  };

  if (first_tile < query_tiles) {
    const PackedRows rows = rows_of(first_tile);
    load_keys(k, args.k);
    load_keys(v, args.v);
    load_rows(q, args.q, rows);
    load_rows(d_o, args.d_o, rows);
    keep_of_row(0, of_row(rows));
  }
  end_group();

  // What the tile adds to dQ of the query tile `tile`, by dSᵀ in `slot`.
  const auto add_query_gradient = [&](int tile, int slot) {
    const auto thread = static_cast<int>(followed_anew(threadIdx.x));
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int first_row = warp / Tile::kColumnWarps * 32;
    const int first_column = warp % Tile::kColumnWarps * Tile::kWarpColumns;
    float d_q[2][Tile::kWarpColumns / 8][4] = {};
    multiply_columns<T, kRows, kDepth, kKeys / 16>(d_q, shared_address(d_s + slot * kKeys * kRows), first_row,
                                                   shared_address(k), first_column);
    float* const sum = args.query_sum + (block.head * query_tiles + tile) * kRows * kDepth;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      if (std::int64_t{tile} * kRows + first_row + 16 * m >= args.rows) break;  // all beyond the last row
#pragma unroll
      for (int n = 0; n < Tile::kWarpColumns / 8; ++n) {
        add_to_four(sum + place_in_sum<kDepth>(first_row / 16 + m, first_column / 8 + n, lane), d_q[m][n]);
      }
    }
  };

  // dQ is one tile behind: its product reads the whole dSᵀ, which the barrier of the next tile brings anyway.
#pragma unroll 1
  for (int tile = first_tile;; ++tile) {
    const int slot = (tile - first_tile) % 2;
    wait_for_groups<0>();
    __syncthreads();  // Q_i, dO_i and dSᵀ_i−1 are there for all, and nobody reads those before them any more.
    float next_of_row = 0;
    if (tile + 1 < query_tiles) {
      const PackedRows next = rows_of(tile + 1);
      load_rows(q + (1 - slot) * kRows * kDepth, args.q, next);
      load_rows(d_o + (1 - slot) * kRows * kDepth, args.d_o, next);
      next_of_row = of_row(next);
    }
    end_group();
    if constexpr (kSums) {
      if (tile > first_tile) {
        if constexpr (kCareful) take_out_infinities<T, kKeys, kDepth, Tile::kThreads>(k, k_changed);
        add_query_gradient(tile - 1, 1 - slot);
        if constexpr (kCareful) {
          if (k_changed) {
            __syncthreads();  // Nobody reads what is left of K any more. The scores want all of it.
            load_keys(k, args.k);
            end_group();
            wait_for_groups<0>();
            __syncthreads();
          }
        }
      }
    }
    if (tile >= query_tiles) break;

    const bool whole = first_key + kKeys <= args.kv_seq &&
                       (!args.causal || rows_of(tile).first + args.first_position >= first_key + kKeys - 1);
    const float* const lse = of_rows + slot * 2 * kRows;
#pragma unroll 1
    for (int part = 0; part < kRows / Tile::kPart; ++part) {
      const std::uint32_t part_q =
          shared_address(q + slot * kRows * kDepth) + rows16<kDepth>(part * Tile::kPart / 16);
      const std::uint32_t part_d_o =
          shared_address(d_o + slot * kRows * kDepth) + rows16<kDepth>(part * Tile::kPart / 16);
      float s[kM][kN][4] = {};
      multiply_rows<T, kDepth>(s, rows_of_warp(k), part_q);
      weights<kCareful>(s, lse + part * Tile::kPart, exponent_of_scores(args.scale));
      if (!whole) {
        const PackedRows rows = rows_of(static_cast<int>(followed_anew(tile)));
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int x = 0; x < 2; ++x) {
            const int row = part * Tile::kPart + 8 * n + lane % 4 * 2 + x;
            const int seen = keys_seen<kKeys>(args, rows.query_of(row), first_key);
#pragma unroll
            for (int m = 0; m < kM; ++m) {
              const int key = warp * Tile::kWarpKeys + 16 * m + lane / 4;
              if (key >= seen) s[m][n][x] = kHidden<kCareful>;
              if (key + 8 >= seen) s[m][n][2 + x] = kHidden<kCareful>;
            }
          }
        }
      }
      float d_p[kM][kN][4] = {};
      multiply_rows<T, kDepth>(d_p, rows_of_warp(v), part_d_o);
      score_gradient<kCareful>(d_p, s, lse + kRows + part * Tile::kPart);
      if constexpr (kCareful) {
        const int of_part = (slot * kRows + part * Tile::kPart) * kDepth;
        add_seen<kDepth>(d_v, d_o + of_part, s);
        bool changed = false;
        take_out_infinities<T, Tile::kPart, kDepth, Tile::kThreads>(d_o + of_part, changed);
        take_out_infinities<T, Tile::kPart, kDepth, Tile::kThreads>(q + of_part, changed);
      }

      std::uint32_t weights_t[kM][kN / 2][4];
      std::uint32_t gradient_t[kM][kN / 2][4];
      round_to_operand<T>(weights_t, s);
      round_to_operand<T>(gradient_t, d_p);
      if constexpr (kSums) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kN; ++n) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int key = warp * Tile::kWarpKeys + 16 * m + lane / 4 + 8 * half;
              const int at = SwizzledTile<kRows>::offset(key, part * kN + n) + 4 * (lane % 4);
              *reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(d_s + slot * kKeys * kRows) + at) =
                  gradient_t[m][n / 2][n % 2 * 2 + half];
            }
          }
        }
      }
      multiply_registers<T, kDepth>(d_v, weights_t, part_d_o);
      multiply_registers<T, kDepth>(d_k, gradient_t, part_q);
    }
    keep_of_row(1 - slot, next_of_row);
  }

  wait_for_groups<0>();
  __syncthreads();  // Nobody reads K_j and V_j any more, whose places the results pass through.
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    const int first = warp * Tile::kWarpKeys + 16 * m;
    const auto row_in = [&](T* matrix) {
      return [=, &args](int row) {
        const std::int64_t key = first_key + first + row;
        return key < args.kv_seq ? matrix + (head_keys + key) * args.columns : nullptr;
      };
    };
    store_rows<kDepth>(d_k[m], args.scale, k + first * kDepth, row_in(args.d_k), args.columns,
                       args.in_pieces);
    store_rows<kDepth>(d_v[m], 1.0F, v + first * kDepth, row_in(args.d_v), args.columns, args.in_pieces);
  }
}

template <class T, class Tile, bool kCareful>
Plan<T> gradients_plan_on(const Problem& problem, bool sums) {
  return {.name = sums ? "gradients" : "key_value_gradients",
          .kernel = sums ? gradients<T, Tile, true, kCareful> : gradients<T, Tile, false, kCareful>,
          .blocks = problem.batch * problem.kv_heads * tiles_of(problem.kv_seq, Tile::kKeys),
          .threads = Tile::kThreads,
          .dynamic_shared = Tile::kSharedBytes};
}

template <class T, bool kCareful>
Plan<T> gradients_plan(const Problem& problem, bool sums) {
  return problem.head_dim <= 64
             ? gradients_plan_on<T, GradientTile<64, kTileRows, 128, 4, 32>, kCareful>(problem, sums)
             : gradients_plan_on<T, GradientTile<128, kTileRows, 128, 8, 64>, kCareful>(problem, sums);
}

}  // namespace flashsim::flash_backward
