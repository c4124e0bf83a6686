// dQ of a query tile, summed in registers while the keys pass by, so that the same input gives the same bits.
// It costs S, P and dP once more. A warp has 16 queries, and its dS never leaves its registers.
//
// A careful build is for inputs that hold NaN or infinities (06_flash_backward_careful.cuh).
#pragma once

#include <cstdint>

#include "cuda/ladder/06_flash_backward.cuh"
#include "cuda/ladder/06_flash_backward_careful.cuh"
#include "cuda/ladder/06_flash_backward_kernels.hpp"
#include "cuda/pieces/tile_operands.cuh"
#include "cuda/pieces/tile_store.cuh"

namespace flashsim::flash_backward {

/// kRows queries; of the kKeys keys of a tile kPart at once.
template <int kDepthOf, int kRowsOf, int kKeysOf, int kPartOf>
struct QueryTile {
  static constexpr int kDepth = kDepthOf, kRows = kRowsOf, kKeys = kKeysOf, kPart = kPartOf;
  static constexpr int kThreads = 2 * kRows;
  static constexpr int kSharedBytes = 2 * kDepth * (2 * kRows + 4 * kPart);  ///< Q, dO, two of K and of V
};

template <class T, class Tile, bool kCareful>
__global__ void __launch_bounds__(Tile::kThreads) query_gradient(const Arguments<T> args) {
  constexpr int kDepth = Tile::kDepth;
  constexpr int kRows = Tile::kRows;
  constexpr int kPart = Tile::kPart;
  extern __shared__ __align__(1024) char shared_memory[];
  T* const q = reinterpret_cast<T*>(shared_memory);
  T* const d_o = q + kRows * kDepth;
  T* const k = d_o + kRows * kDepth;    // two of them
  T* const v = k + 2 * kPart * kDepth;  // likewise

  const std::int64_t head = blockIdx.x / args.tiles;
  const std::int64_t tile = args.tiles - 1 - blockIdx.x % args.tiles;
  const std::int64_t head_keys = head * args.kv_seq;
  const std::int64_t head_rows = head * args.rows;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const PackedRows rows = PackedRows::from(tile * kRows, args.seq, args.group);

  const auto visible_to = [&](std::int64_t query) {
    const std::int64_t diagonal = query + args.first_position + 1;
    const std::int64_t seen = args.causal && diagonal < args.kv_seq ? diagonal : args.kv_seq;
    return seen < 0 ? 0 : seen;
  };
  const std::int64_t last_query = rows.query_of(kRows - 1);
  const std::int64_t visible = visible_to(last_query < args.seq ? last_query : args.seq - 1);
  const std::int64_t parts = (visible + Tile::kKeys - 1) / Tile::kKeys * (Tile::kKeys / kPart);

  const auto load_rows = [&](T* to, const T* from) {
    const auto row_at = [&](int row) {
      const PackedRow at = rows[row];
      const bool there = at.query < args.seq;
      return MemoryRow<T>{from + (head_rows + (there ? at.place : 0)) * args.columns, there};
    };
    copy_rows<kRows, kDepth, Tile::kThreads>(to, row_at, args.columns, args.in_pieces);
  };
  const auto load_keys = [&](T* to, const T* from, std::int64_t first_key) {
    const auto row_at = [&](int row) {
      const bool there = first_key + row < args.kv_seq;
      return MemoryRow<T>{from + (head_keys + (there ? first_key + row : 0)) * args.columns, there};
    };
    copy_rows<kPart, kDepth, Tile::kThreads>(to, row_at, args.columns, args.in_pieces);
  };

  if (parts > 0) {
    load_rows(q, args.q);
    load_rows(d_o, args.d_o);
    load_keys(k, args.k, 0);
    load_keys(v, args.v, 0);
  }
  end_group();

  float lse[2];
  float delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const PackedRow at = rows[warp * 16 + 8 * half + lane / 4];
    const bool there = at.query < args.seq;
    lse[half] = there ? subtracted(args.lse[head_rows + at.place]) : INFINITY;
    delta[half] = there ? args.deltas[head_rows + at.place] : 0.0F;
  }
  const float exponent = exponent_of_scores(args.scale);
  const std::uint32_t warp_q = shared_address(q) + rows16<kDepth>(warp);
  const std::uint32_t warp_d_o = shared_address(d_o) + rows16<kDepth>(warp);
  float d_q[1][kDepth / 8][4] = {};

#pragma unroll 1
  for (std::int64_t part = 0; part < parts; ++part) {
    const int slot = static_cast<int>(part % 2);
    const std::int64_t first_key = part * kPart;
    wait_for_groups<0>();
    __syncthreads();  // K_j and V_j are there for all, and nobody reads those before them any more.
    if (part + 1 < parts) {
      load_keys(k + (1 - slot) * kPart * kDepth, args.k, first_key + kPart);
      load_keys(v + (1 - slot) * kPart * kDepth, args.v, first_key + kPart);
    }
    end_group();
    if (first_key >= visible) continue;

    const std::uint32_t part_k = shared_address(k + slot * kPart * kDepth);
    const std::uint32_t part_v = shared_address(v + slot * kPart * kDepth);
    float s[1][kPart / 8][4] = {};
    multiply_rows<T, kDepth>(s, warp_q, part_k);
#pragma unroll
    for (auto& fragment : s[0]) {
#pragma unroll
      for (int x = 0; x < 4; ++x) fragment[x] = weight_of<kCareful>(fragment[x], exponent, lse[x / 2]);
    }
    if (first_key + kPart > visible_to(rows.first)) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t query = rows.query_of(warp * 16 + 8 * half + lane / 4);
        const int seen = keys_seen<kPart>(args, query, first_key);
#pragma unroll
        for (int n = 0; n < kPart / 8; ++n) {
          const int key = 8 * n + lane % 4 * 2;
          if (key >= seen) s[0][n][2 * half] = kHidden<kCareful>;
          if (key + 1 >= seen) s[0][n][2 * half + 1] = kHidden<kCareful>;
        }
      }
    }
    float d_p[1][kPart / 8][4] = {};
    multiply_rows<T, kDepth>(d_p, warp_d_o, part_v);
#pragma unroll
    for (int n = 0; n < kPart / 8; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        d_p[0][n][x] = score_gradient_of<kCareful>(s[0][n][x], d_p[0][n][x], delta[x / 2]);
      }
    }
    if constexpr (kCareful) {
      bool changed = false;
      take_out_infinities<T, kPart, kDepth, Tile::kThreads>(k + slot * kPart * kDepth, changed);
    }
    std::uint32_t d_s[1][kPart / 16][4];
    round_to_operand<T>(d_s, d_p);
    multiply_registers<T, kDepth>(d_q, d_s, part_k);
  }

  wait_for_groups<0>();
  __syncthreads();  // The copies of other threads have ended too, where no key was seen.
  const auto row_at = [&](int row) {
    const PackedRow at = rows[warp * 16 + row];
    return at.query < args.seq ? args.d_q + (head_rows + at.place) * args.columns : nullptr;
  };
  store_rows<kDepth>(d_q[0], args.scale, q + warp * 16 * kDepth, row_at, args.columns, args.in_pieces);
}

template <class T, class Tile, bool kCareful>
Plan<T> query_gradient_plan_on(const Problem& problem) {
  return {.name = "query_gradient",
          .kernel = query_gradient<T, Tile, kCareful>,
          .blocks = query_tiles(problem),
          .threads = Tile::kThreads,
          .dynamic_shared = Tile::kSharedBytes};
}

template <class T, bool kCareful>
Plan<T> query_gradient_plan(const Problem& problem) {
  return problem.head_dim <= 64
             ? query_gradient_plan_on<T, QueryTile<64, kTileRows, 128, 64>, kCareful>(problem)
             : query_gradient_plan_on<T, QueryTile<128, kTileRows, 128, 64>, kCareful>(problem);
}

}  // namespace flashsim::flash_backward
