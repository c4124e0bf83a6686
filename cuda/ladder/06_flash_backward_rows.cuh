// What comes before and after the gradients of 06: D and the zeros of dQ's sum; dQ from its sum.
#pragma once

#include "cuda/ladder/06_flash_backward.cuh"
#include "cuda/pieces/tile_store.cuh"

namespace flashsim::flash_backward {

inline constexpr int kRowThreads = 256;

/// D = Σ dO ∘ O of the rows of a query tile of a query head, and zeros in a tile of dQ's sum where there is
/// one: packed, there are no more of those. kDepth / 8 lanes share a row.
template <class T, int kDepth>
__global__ void __launch_bounds__(kRowThreads) deltas(const Arguments<T> args) {
  constexpr int kLanes = kDepth / 8;
  constexpr int kRowsAtOnce = kRowThreads / kLanes;
  const std::int64_t head = blockIdx.x / args.tiles;
  const std::int64_t first = std::int64_t{blockIdx.x % args.tiles} * kTileRows;
  const std::int64_t begin = head * args.seq + first;
  const std::int64_t end = head * args.seq + (first + kTileRows < args.seq ? first + kTileRows : args.seq);
  if (blockIdx.x < args.sum_tiles) {
    float4* const sum =
        reinterpret_cast<float4*>(args.query_sum + blockIdx.x * std::int64_t{kTileRows * kDepth});
#pragma unroll
    for (int n = 0; n < kTileRows * kDepth / 4 / kRowThreads; ++n) {
      sum[n * kRowThreads + threadIdx.x] = make_float4(0, 0, 0, 0);
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int row_of_thread = static_cast<int>(threadIdx.x) / kLanes;
#pragma unroll
  for (int i = 0; i < kTileRows / kRowsAtOnce; ++i) {
    const std::int64_t row = begin + i * kRowsAtOnce + row_of_thread;
    float sum = 0;
    if (row < end) {
      const T* const o = args.o + row * args.columns;
      const T* const d_o = args.d_o + row * args.columns;
      if (args.in_pieces) {
        if (8 * lane < args.columns) {
          const auto a = *reinterpret_cast<const Neighbours<T, 8>*>(o + 8 * lane);
          const auto b = *reinterpret_cast<const Neighbours<T, 8>*>(d_o + 8 * lane);
#pragma unroll
          for (int x = 0; x < 8; ++x) {
            sum = fmaf(static_cast<float>(a.at[x]), static_cast<float>(b.at[x]), sum);
          }
        }
      } else {
        for (int x = lane; x < args.columns; x += kLanes) {
          sum = fmaf(static_cast<float>(o[x]), static_cast<float>(d_o[x]), sum);
        }
      }
    }
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);
    if (lane == 0 && row < end) args.deltas[row] = sum;
  }
}

inline constexpr int kConversionThreads = 2 * kTileRows;

/// dQ = scale times its sum, in the storage type. A warp has 16 rows.
template <class T, int kDepth>
__global__ void __launch_bounds__(kConversionThreads) conversion(const Arguments<T> args) {
  __shared__ __align__(16) char shared_memory[2 * kTileRows * kDepth];
  const std::int64_t head = blockIdx.x / args.tiles;
  const std::int64_t tile = blockIdx.x % args.tiles;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const sum = args.query_sum + blockIdx.x * std::int64_t{kTileRows * kDepth};
  float d_q[kDepth / 8][4];
#pragma unroll
  for (int n = 0; n < kDepth / 8; ++n) {
    const float4 four = *reinterpret_cast<const float4*>(sum + place_in_sum<kDepth>(warp, n, lane));
    d_q[n][0] = four.x;
    d_q[n][1] = four.y;
    d_q[n][2] = four.z;
    d_q[n][3] = four.w;
  }
  const PackedRows rows = PackedRows::from(tile * kTileRows, args.seq, args.group);
  const auto row_at = [&](int row) {
    const PackedRow at = rows[warp * 16 + row];
    return at.query < args.seq ? args.d_q + (head * args.rows + at.place) * args.columns : nullptr;
  };
  store_rows<kDepth>(d_q, args.scale, reinterpret_cast<T*>(shared_memory) + warp * 16 * kDepth, row_at,
                     args.columns, args.in_pieces);
}

}  // namespace flashsim::flash_backward
