// Products of a warp whose operands lie in swizzled tiles in shared memory. A tile is read as it lies, each
// of its rows a row of A or a column of B, or turned, so that a product over rows needs no second copy of it.
//
// Rows of the tiles have 64 elements or a multiple, and tiles start at multiples of 1024 bytes: so the next
// piece of a row is an exclusive or of the address away, and the next 16 rows are a sum.
#pragma once

#include <cstdint>

#include "cuda/pieces/matrix_fragment.cuh"
#include "cuda/pieces/swizzled_tile.cuh"

namespace flashsim {

/// Sixteen rows of a product are `kFragments` fragments side by side.
template <int kFragments>
using FragmentRow = float[kFragments][4];

/// Which of the 16×16 elements at (row 0, column 0) a lane names for load_matrices, so that its four matrices
/// come in the order upper left, lower left, upper right, lower right; in bytes from the tile's start.
template <int kDepth>
__device__ inline std::uint32_t down_first(int lane) {
  return SwizzledTile<kDepth>::offset(lane % 16, lane / 16);
}
/// The same in the order upper left, upper right, lower left, lower right.
template <int kDepth>
__device__ inline std::uint32_t across_first(int lane) {
  return SwizzledTile<kDepth>::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

/// Sixteen columns to the right; `columns16` may have any bits that the lane's own piece hasn't.
__device__ inline std::uint32_t right_by(std::uint32_t address, int columns16) {
  return address ^ static_cast<std::uint32_t>(32 * columns16);
}
template <int kDepth>
__device__ constexpr std::uint32_t rows16(int n) {
  return static_cast<std::uint32_t>(n * 16 * 2 * kDepth);
}

/// C += A Bᵀ of 16·M rows of tile `a` and 8·N rows of tile `b`, over their kDepth columns.
template <class T, int kDepth, int M, int N>
__device__ inline void multiply_rows(float (&c)[M][N][4], std::uint32_t a, std::uint32_t b) {
  static_assert(N % 2 == 0, "an ldmatrix brings two fragments of B");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t a_at = a + down_first<kDepth>(lane);
  const std::uint32_t b_at = b + across_first<kDepth>(lane);
  std::uint32_t left[2][M][4];
  std::uint32_t right[2][N / 2][4];
  const auto load = [&](int slot, int k) {
#pragma unroll
    for (int m = 0; m < M; ++m) load_matrices(left[slot][m], right_by(a_at, k) + rows16<kDepth>(m));
#pragma unroll
    for (int n = 0; n < N / 2; ++n) load_matrices(right[slot][n], right_by(b_at, k) + rows16<kDepth>(n));
  };
  load(0, 0);
#pragma unroll
  for (int k = 0; k < kDepth / 16; ++k) {
    if (k + 1 < kDepth / 16) load((k + 1) % 2, k + 1);
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(c[m][n], left[k % 2][m], right[k % 2][n / 2][n % 2 * 2],
                        right[k % 2][n / 2][n % 2 * 2 + 1]);
      }
    }
  }
}

/// C += A B with A in registers, 16·M rows by 16·K; B is 16·K rows of tile `b`, 8·N columns of it.
template <class T, int kDepth, int M, int K, int N>
__device__ inline void multiply_registers(float (&c)[M][N][4], const std::uint32_t (&a)[M][K][4],
                                          std::uint32_t b) {
  static_assert(N % 2 == 0, "an ldmatrix brings two fragments of B");
  const std::uint32_t b_at = b + down_first<kDepth>(static_cast<int>(threadIdx.x) % 32);
  constexpr int kLoads = K * N / 2;
  std::uint32_t right[2][4];
  const auto load = [&](int n) {
    load_turned_matrices(right[n % 2], right_by(b_at, n % (N / 2)) + rows16<kDepth>(n / (N / 2)));
  };
  load(0);
#pragma unroll
  for (int n = 0; n < kLoads; ++n) {
    if (n + 1 < kLoads) load(n + 1);
    const int k = n / (N / 2);
    const int column = n % (N / 2) * 2;
#pragma unroll
    for (int m = 0; m < M; ++m) {
      multiply_add<T>(c[m][column], a[m][k], right[n % 2][0], right[n % 2][1]);
      multiply_add<T>(c[m][column + 1], a[m][k], right[n % 2][2], right[n % 2][3]);
    }
  }
}

/// C += Aᵀ B of 16·M columns of tile `a` and 8·N columns of tile `b`, over 16·K rows of both.
template <class T, int kDepthOfA, int kDepthOfB, int K, int M, int N>
__device__ inline void multiply_columns(float (&c)[M][N][4], std::uint32_t a, int first_of_a, std::uint32_t b,
                                        int first_of_b) {
  static_assert(N % 2 == 0, "an ldmatrix brings two fragments of B");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t a_at[M];
  std::uint32_t b_at[N / 2];
#pragma unroll
  for (int m = 0; m < M; ++m) a_at[m] = right_by(a + across_first<kDepthOfA>(lane), first_of_a / 16 + m);
#pragma unroll
  for (int n = 0; n < N / 2; ++n) b_at[n] = right_by(b + down_first<kDepthOfB>(lane), first_of_b / 16 + n);
  std::uint32_t left[2][M][4];
  std::uint32_t right[2][N / 2][4];
  const auto load = [&](int slot, int k) {
#pragma unroll
    for (int m = 0; m < M; ++m) load_turned_matrices(left[slot][m], a_at[m] + rows16<kDepthOfA>(k));
#pragma unroll
    for (int n = 0; n < N / 2; ++n) load_turned_matrices(right[slot][n], b_at[n] + rows16<kDepthOfB>(k));
  };
  load(0, 0);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    if (k + 1 < K) load((k + 1) % 2, k + 1);
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(c[m][n], left[k % 2][m], right[k % 2][n / 2][n % 2 * 2],
                        right[k % 2][n / 2][n % 2 * 2 + 1]);
      }
    }
  }
}

/// 16·M rows of C, rounded, as the A of the next product.
template <class T, int M, int N>
__device__ inline void round_to_operand(std::uint32_t (&a)[M][N / 2][4], const float (&c)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      a[m][n / 2][n % 2 * 2] = rounded_pair<T>(c[m][n][0], c[m][n][1]);
      a[m][n / 2][n % 2 * 2 + 1] = rounded_pair<T>(c[m][n][2], c[m][n][3]);
    }
  }
}

}  // namespace flashsim
