// idea: FlashAttention-2, Algorithm 1: keys and values pass by a query tile whose O and softmax stay put.
// what changed: one kernel for three; softmax goes online: l and O times r = exp(m − m′) at each tile.
// HBM traffic: Q, O and L once; K and V once for each query tile that sees them: 2Nd + N + 2Nd·Tr.
// on-chip memory: Q_i, K_j, V_j, P_ij in shared memory, 160 KiB at d 128; S_ij and O_i in registers.
// parallelism: a block a query tile, long ones first; a warp owns 16 rows, softmax needs no barrier.
// limits: float32 by plain multiply-adds, never TF32; d ≤ 256. It shows the bytes, not the speed.
#pragma once

#include <cstdint>

#include "cuda/ladder/rung.hpp"
#include "cuda/pieces/async_copy.cuh"
#include "cuda/pieces/online_softmax.cuh"

namespace flashsim::flash_fp32 {

/// Tiles of kRows queries and kKeys keys, rows padded with zeros to kDepth columns.
///
/// A warp has kWarpRows rows. Its lanes stand 4 × 8: lane (r, c) has the rows r, r+4, r+8, r+12 of them; of S
/// the keys c, c+8, …; of O the columns 4c … 4c+3, 4c+32 ….
template <int kDepthOf, int kRowsOf, int kKeysOf>
struct Tile {
  static constexpr int kDepth = kDepthOf, kRows = kRowsOf, kKeys = kKeysOf;
  static constexpr int kWarpRows = 16;
  static constexpr int kThreads = kRows / kWarpRows * 32;
  static constexpr int kRowsOfLane = kWarpRows / 4;
  static constexpr int kKeysOfLane = kKeys / 8;
  static constexpr int kColumnsOfLane = kDepth / 8;
  static constexpr int kSharedFloats = kRows * kDepth + 2 * kKeys * kDepth + kRows * kKeys;
  static constexpr int kSharedBytes = 4 * kSharedFloats;
  static_assert(kDepth % 32 == 0, "eight lanes have four columns each, once or more");
  static_assert(kKeys % 8 == 0, "eight lanes share the keys");
};

struct Arguments {
  const float* q;
  const float* k;
  const float* v;
  float* o;
  float* lse;
  std::int64_t seq, kv_seq, heads, kv_heads, head_dim;
  std::int64_t query_tiles;
  std::int64_t first_position;  ///< among the keys, of query 0
  bool causal;
  float scale;
  OwnTraffic* traffic;
};

/// Where four floats of a row lie in shared memory. Exclusive or with the row's number spreads a column of
/// float4 over all banks.
template <int kColumns>
__device__ inline float* at_chunk(float* tile, int row, int chunk, int spread) {
  return tile + row * kColumns + 4 * (chunk ^ spread);
}
__device__ inline int spread_of_row(int row) { return row & 7; }  // Q and K: a row's lane reads a chunk
__device__ inline int spread_of_weights(int row) {
  return 2 * (row & 3);
}  // P: written by key, read by chunk

__device__ inline float4& as_float4(float* at) { return *reinterpret_cast<float4*>(at); }

/// Starts copying rows [first, first + kTileRows) of a [rows, columns] matrix; what lies outside becomes 0.
/// Gives the bytes that this thread loads.
template <int kTileRows, int kColumns, int kThreads, bool kSpread>
__device__ inline unsigned load_tile(float* tile, const float* matrix, std::int64_t first, std::int64_t rows,
                                     int columns) {
  unsigned bytes = 0;
  if (columns % 4 == 0) {
    constexpr int kChunks = kColumns / 4;
#pragma unroll 4
    for (int n = threadIdx.x; n < kTileRows * kChunks; n += kThreads) {
      const int row = n / kChunks;
      const int chunk = n % kChunks;
      const bool there = first + row < rows && 4 * chunk < columns;
      const float* from = there ? matrix + (first + row) * columns + 4 * chunk : matrix;
      copy_async<16>(at_chunk<kColumns>(tile, row, chunk, kSpread ? spread_of_row(row) : 0), from, there);
      bytes += there ? 16U : 0U;
    }
  } else {
    for (int n = threadIdx.x; n < kTileRows * kColumns; n += kThreads) {
      const int row = n / kColumns;
      const int column = n % kColumns;
      const bool there = first + row < rows && column < columns;
      const float* from = there ? matrix + (first + row) * columns + column : matrix;
      float* to = at_chunk<kColumns>(tile, row, column / 4, kSpread ? spread_of_row(row) : 0) + column % 4;
      copy_async<4>(to, from, there);
      bytes += there ? 4U : 0U;
    }
  }
  return bytes;
}

/// Largest, or sum, of a value over the eight lanes that share a row; all of them get it.
__device__ inline float largest_of_row(float value) {
  for (int lanes = 4; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, lanes));
  return value;
}
__device__ inline float sum_of_row(float value) {
  for (int lanes = 4; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffU, value, lanes);
  return value;
}

/// What a lane multiplies next: four columns of its rows of Q_i and of its keys of K_j.
template <class T>
struct ScoreOperands {
  float4 a[T::kRowsOfLane];
  float4 b[T::kKeysOfLane];

  __device__ inline void load(float* q, float* k, int row, int key, int chunk) {
#pragma unroll
    for (int i = 0; i < T::kRowsOfLane; ++i) {
      a[i] = as_float4(at_chunk<T::kDepth>(q, row + 4 * i, chunk, spread_of_row(row + 4 * i)));
    }
#pragma unroll
    for (int j = 0; j < T::kKeysOfLane; ++j) {
      b[j] = as_float4(at_chunk<T::kDepth>(k, key + 8 * j, chunk, spread_of_row(key)));
    }
  }
  __device__ inline void multiply(float (&s)[T::kRowsOfLane][T::kKeysOfLane]) const {
#pragma unroll
    for (int j = 0; j < T::kKeysOfLane; ++j) {
#pragma unroll
      for (int i = 0; i < T::kRowsOfLane; ++i) {
        s[i][j] = fmaf(a[i].x, b[j].x, s[i][j]);
        s[i][j] = fmaf(a[i].y, b[j].y, s[i][j]);
        s[i][j] = fmaf(a[i].z, b[j].z, s[i][j]);
        s[i][j] = fmaf(a[i].w, b[j].w, s[i][j]);
      }
    }
  }
};

/// S_ij = Q_i K_jᵀ, of one lane.
template <class T>
__device__ inline void scores(float (&s)[T::kRowsOfLane][T::kKeysOfLane], float* q, float* k, int row,
                              int key) {
  constexpr int kChunks = T::kDepth / 4;
#pragma unroll
  for (auto& of_row : s) {
#pragma unroll
    for (float& each : of_row) each = 0;
  }
  ScoreOperands<T> now;
  ScoreOperands<T> next;
  now.load(q, k, row, key, 0);
#pragma unroll 1
  for (int chunk = 0; chunk < kChunks; chunk += 2) {
    next.load(q, k, row, key, chunk + 1);
    now.multiply(s);
    if (chunk + 2 < kChunks) now.load(q, k, row, key, chunk + 2);
    next.multiply(s);
  }
}

/// One key's values in a lane's columns.
template <class T>
struct ValueOperands {
  float4 b[T::kColumnsOfLane / 4];

  __device__ inline void load(float* v, int key, int lane_column) {
#pragma unroll
    for (int part = 0; part < T::kColumnsOfLane / 4; ++part) {
      b[part] = as_float4(v + key * T::kDepth + 32 * part + 4 * lane_column);
    }
  }
};

__device__ inline float component(const float4& of, int n) {
  return n == 0 ? of.x : n == 1 ? of.y : n == 2 ? of.z : of.w;
}

/// O_i += P_ij V_j, of one lane. `kCareful` leaves out keys without weight, whose values may be NaN.
template <class T, bool kCareful>
__device__ inline void accumulate(float (&o)[T::kRowsOfLane][T::kColumnsOfLane], float* p, float* v, int row,
                                  int lane_column) {
  ValueOperands<T> values[2];
  float4 weights[T::kRowsOfLane];
  float4 weights_next[T::kRowsOfLane];
  const auto load_weights = [&](float4(&to)[T::kRowsOfLane], int chunk) {
#pragma unroll
    for (int i = 0; i < T::kRowsOfLane; ++i) {
      to[i] = as_float4(at_chunk<T::kKeys>(p, row + 4 * i, chunk, spread_of_weights(row)));
    }
  };
  load_weights(weights, 0);
  values[0].load(v, 0, lane_column);
#pragma unroll 1
  for (int chunk = 0; chunk < T::kKeys / 4; ++chunk) {
    load_weights(weights_next, chunk + 1 < T::kKeys / 4 ? chunk + 1 : chunk);
#pragma unroll
    for (int key = 0; key < 4; ++key) {
      const int following = 4 * chunk + key + 1;
      values[(key + 1) % 2].load(v, following < T::kKeys ? following : 0, lane_column);
#pragma unroll
      for (int i = 0; i < T::kRowsOfLane; ++i) {
        const float w = component(weights[i], key);
        if (kCareful && has_no_weight(w)) continue;
#pragma unroll
        for (int part = 0; part < T::kColumnsOfLane / 4; ++part) {
          const float4& b = values[key % 2].b[part];
          float* const to = &o[i][4 * part];
          to[0] = fmaf(w, b.x, to[0]);
          to[1] = fmaf(w, b.y, to[1]);
          to[2] = fmaf(w, b.z, to[2]);
          to[3] = fmaf(w, b.w, to[3]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < T::kRowsOfLane; ++i) weights[i] = weights_next[i];
  }
}

template <class T, class Softmax, bool kCounts>
__global__ void __launch_bounds__(T::kThreads) flash(const Arguments args) {
  extern __shared__ float4 shared_memory[];
  float* const q = reinterpret_cast<float*>(shared_memory);
  float* const k = q + T::kRows * T::kDepth;
  float* const v = k + T::kKeys * T::kDepth;
  float* const p = v + T::kKeys * T::kDepth;

  const std::int64_t head = blockIdx.x / args.query_tiles;
  const std::int64_t tile = args.query_tiles - 1 - blockIdx.x % args.query_tiles;
  const std::int64_t kv_head =
      head / args.heads * args.kv_heads + head % args.heads / (args.heads / args.kv_heads);
  const std::int64_t first_row = tile * T::kRows;
  const int columns = static_cast<int>(args.head_dim);
  const float* const head_k = args.k + kv_head * args.kv_seq * columns;
  const float* const head_v = args.v + kv_head * args.kv_seq * columns;

  const int lane = threadIdx.x % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * T::kWarpRows + lane / 8;  // and row + 4, + 8, + 12
  const int lane_column = lane % 8;

  // Keys before this one are on or before the diagonal of a row of the tile.
  const auto diagonal_of = [&](std::int64_t of_row) {
    const std::int64_t end = of_row + args.first_position + 1;
    return args.causal ? (end > 0 ? end : 0) : args.kv_seq;
  };
  const auto visible_to = [&](std::int64_t of_row) {
    const std::int64_t end = diagonal_of(of_row);
    return end < args.kv_seq ? end : args.kv_seq;
  };
  const std::int64_t last_row = first_row + T::kRows < args.seq ? first_row + T::kRows - 1 : args.seq - 1;
  const std::int64_t key_tiles = (visible_to(last_row) + T::kKeys - 1) / T::kKeys;

  unsigned loaded = 0;
  unsigned stored = 0;
  OnlineRow rows[T::kRowsOfLane];
  float o[T::kRowsOfLane][T::kColumnsOfLane] = {};

  loaded += load_tile<T::kRows, T::kDepth, T::kThreads, true>(q, args.q + head * args.seq * columns,
                                                              first_row, args.seq, columns);
  if (key_tiles > 0) {
    loaded += load_tile<T::kKeys, T::kDepth, T::kThreads, true>(k, head_k, 0, args.kv_seq, columns);
  }
  end_group();

  for (std::int64_t j = 0; j < key_tiles; ++j) {
    const std::int64_t first_key = j * T::kKeys;
    wait_for_groups<0>();
    __syncthreads();  // Q_i and K_j are there for all, and nobody reads V_j−1 any more.
    loaded += load_tile<T::kKeys, T::kDepth, T::kThreads, false>(v, head_v, first_key, args.kv_seq, columns);
    end_group();

    float s[T::kRowsOfLane][T::kKeysOfLane];
    scores<T>(s, q, k, row, lane_column);

    const bool whole = visible_to(first_row) >= first_key + T::kKeys;
    bool masked = false;
#pragma unroll
    for (int i = 0; i < T::kRowsOfLane; ++i) {
      // So many keys of this tile the row sees; a fault lets it see the zeros that fill up the last one.
      const std::int64_t absolute = first_row + row + 4 * i;
      const std::int64_t seen =
          (Softmax::kFault == Fault::unmasked_padding && !args.causal ? first_key + T::kKeys
           : Softmax::kFault == Fault::unmasked_padding               ? diagonal_of(absolute)
                                                                      : visible_to(absolute)) -
          first_key;
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < T::kKeysOfLane; ++n) {
        const int key = lane_column + 8 * n;
        s[i][n] *= args.scale;
        if (!whole && key >= seen) {
          s[i][n] = first_key + key < args.kv_seq ? masked_score<Softmax>() : -INFINITY;
        }
        masked = masked || s[i][n] == -INFINITY;
        largest = fmaxf(largest, s[i][n]);
      }
      const Move move = rise_to<Softmax>(rows[i], largest_of_row(largest));
      float sum = 0;
#pragma unroll
      for (int n = 0; n < T::kKeysOfLane; ++n) {
        const float weight = weight_of(s[i][n], move.reference);
        sum += weight;
        const int key = lane_column + 8 * n;
        at_chunk<T::kKeys>(p, row + 4 * i, key / 4, spread_of_weights(row))[key % 4] = weight;
      }
      rows[i].l = Softmax::kFault == Fault::reset_per_tile ? sum : rows[i].l * move.factor_l + sum;
#pragma unroll
      for (float& each : o[i]) each = Softmax::kFault == Fault::reset_per_tile ? 0.0F : each * move.factor_o;
    }

    wait_for_groups<0>();
    __syncthreads();  // V_j is there for all, P_ij for the warp that wrote it, and nobody reads K_j any more.
    if (j + 1 < key_tiles) {
      loaded += load_tile<T::kKeys, T::kDepth, T::kThreads, true>(k, head_k, first_key + T::kKeys,
                                                                  args.kv_seq, columns);
    }
    end_group();
    if (__any_sync(0xffffffffU, masked)) {
      accumulate<T, true>(o, p, v, row, lane_column);
    } else {
      accumulate<T, false>(o, p, v, row, lane_column);
    }
  }

  wait_for_groups<0>();  // Where there was no key tile, Q_i may still be on its way.
  __syncwarp();          // The warp has read its part of P_ij, in which its rows of L go out now.
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const lse = p + warp * T::kWarpRows * T::kKeys;
  float* const head_o = args.o + head * args.seq * columns;
#pragma unroll
  for (int i = 0; i < T::kRowsOfLane; ++i) {
    const std::int64_t absolute = first_row + row + 4 * i;
    rows[i].l = sum_of_row(rows[i].l);
    const float divisor = is_empty(rows[i]) ? 1.0F : rows[i].l;
    if (lane_column == 0) lse[lane / 8 + 4 * i] = logsumexp(rows[i]);
    if (absolute >= args.seq) continue;
#pragma unroll
    for (int part = 0; part < T::kColumnsOfLane / 4; ++part) {
      const int column = 32 * part + 4 * lane_column;
      float* const to = head_o + absolute * columns + column;
      const float* const from = &o[i][4 * part];
      if (columns % 4 == 0) {
        if (column >= columns) continue;
        *reinterpret_cast<float4*>(to) =
            make_float4(from[0] / divisor, from[1] / divisor, from[2] / divisor, from[3] / divisor);
        stored += 16;
      } else {
#pragma unroll
        for (int x = 0; x < 4; ++x) {
          if (column + x >= columns) continue;
          to[x] = from[x] / divisor;
          stored += 4;
        }
      }
    }
  }
  __syncwarp();
  const std::int64_t own_row = first_row + warp * T::kWarpRows + lane;
  if (lane < T::kWarpRows && own_row < args.seq) {
    args.lse[head * args.seq + own_row] = lse[lane];
    stored += 4;
  }
  if constexpr (kCounts) {
    atomicAdd(&args.traffic->read, static_cast<unsigned long long>(loaded));
    atomicAdd(&args.traffic->written, static_cast<unsigned long long>(stored));
  }
}

}  // namespace flashsim::flash_fp32
