// A matrix product by one block: a tile of 64 rows and 64, 128 or 256 columns, whose sums stay in registers
// while slices of the operands pass through shared memory, 32 terms of each sum at a time.
#pragma once

#include "cuda/pieces/byte_count.cuh"
#include "cuda/pieces/masking.cuh"
#include "cuda/pieces/storage.cuh"

namespace flashsim {

inline constexpr int kTileRows = 64;
inline constexpr int kSliceTerms = 32;
inline constexpr int kProductThreads = 256;

/// A thread's sums: 4 rows by 4 columns in each group of 64 columns.
inline constexpr int kThreadRows = 4;
inline constexpr int kThreadColumns = 4;
inline constexpr int kGroupColumns = 64;

/// Four rows more than needed, so that threads that store a row's neighbouring terms hit other banks.
inline constexpr int kSliceStride = kTileRows + 4;

/// A slice of an operand of which the terms lie in rows, turned: [term][row].
using TurnedSlice = float[kSliceTerms][kSliceStride];

template <int kGroups>
using ThreadSums = float[kGroups][kThreadRows][kThreadColumns];

/// Where a thread's sums lie in the tile. A warp covers 16 rows by 32 columns, so that its loads from shared
/// memory are broadcasts or neighbours.
struct ThreadPlace {
  int row, column;
};

__device__ inline ThreadPlace thread_place() {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  return {.row = kThreadRows * (lane / 8 + 4 * (warp / 2)),
          .column = kThreadColumns * (lane % 8 + 8 * (warp % 2))};
}

/// `terms` terms of `rows` rows that are `row_length` apart; the rest of the slice becomes 0. Terms are a
/// multiple of the vector width where `vectors`.
template <class T, bool kCounts>
__device__ void load_turned(TurnedSlice& slice, const T* from, std::int64_t row_length, int rows, int terms,
                            bool vectors, ByteCount<kCounts>& bytes) {
  if (vectors) {
    constexpr int kWidth = kVectorWidth<T>;
    constexpr int kVectors = kTileRows * kSliceTerms / kWidth;
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kVectors; i += kProductThreads) {
      // Two neighbours of a row, then the next row: a warp reads whole sectors of 32 bytes.
      const int row = i / 2 % kTileRows;
      const int term = kWidth * (i % 2 + i / (2 * kTileRows) * 2);
      Neighbours<T, kWidth> v{};
      if (row < rows && term < terms) {
        v = *reinterpret_cast<const Neighbours<T, kWidth>*>(from + row * row_length + term);
        bytes.read(sizeof v);
      }
#pragma unroll
      for (int x = 0; x < kWidth; ++x) slice[term + x][row] = static_cast<float>(v.at[x]);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kSliceTerms; i += kProductThreads) {
      const int row = i / kSliceTerms;
      const int term = i % kSliceTerms;
      float value = 0;
      if (row < rows && term < terms) {
        value = static_cast<float>(from[row * row_length + term]);
        bytes.read(sizeof(T));
      }
      slice[term][row] = value;
    }
  }
}

/// `terms` rows of `columns` elements, one after the other in memory, as they lie; the rest becomes 0. Says
/// whether all that this thread loaded is finite.
template <class T, int kColumns, bool kCounts>
__device__ bool load_straight(float (&slice)[kSliceTerms][kColumns], const T* from, int columns, int terms,
                              bool vectors, ByteCount<kCounts>& bytes) {
  bool finite = true;
  const auto put = [&](float& to, float value) {
    finite = finite && fabsf(value) < INFINITY;
    to = value;
  };
  if (vectors) {
    constexpr int kWidth = kVectorWidth<T>;
    constexpr int kVectors = kColumns / kWidth;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kSliceTerms * kVectors; i += kProductThreads) {
      const int term = i / kVectors;
      const int column = i % kVectors * kWidth;
      Neighbours<T, kWidth> v{};
      if (term < terms && column < columns) {
        v = *reinterpret_cast<const Neighbours<T, kWidth>*>(from + term * columns + column);
        bytes.read(sizeof v);
      }
#pragma unroll
      for (int x = 0; x < kWidth; ++x) put(slice[term][column + x], static_cast<float>(v.at[x]));
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < kSliceTerms * kColumns; i += kProductThreads) {
      const int term = i / kColumns;
      const int column = i % kColumns;
      float value = 0;
      if (term < terms && column < columns) {
        value = static_cast<float>(from[term * columns + column]);
        bytes.read(sizeof(T));
      }
      put(slice[term][column], value);
    }
  }
  return finite;
}

/// sums += Aᵀ B over a slice, term by term in their order. `kSkips`: a term whose weight in A is none is left
/// out, whatever stands in B.
template <bool kSkips, int kGroups, int kStride>
__device__ void multiply_slice(ThreadSums<kGroups>& sums, const TurnedSlice& a,
                               const float (&b)[kSliceTerms][kStride], ThreadPlace at) {
#pragma unroll(kSkips ? 1 : kGroups == 4 ? 2 : 4)
  for (int term = 0; term < kSliceTerms; ++term) {
    const auto rows = *reinterpret_cast<const Neighbours<float, kThreadRows>*>(&a[term][at.row]);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const auto columns = *reinterpret_cast<const Neighbours<float, kThreadColumns>*>(
          &b[term][g * kGroupColumns + at.column]);
#pragma unroll
      for (int r = 0; r < kThreadRows; ++r) {
        if (kSkips && has_no_weight(rows.at[r])) continue;
#pragma unroll
        for (int c = 0; c < kThreadColumns; ++c) {
          sums[g][r][c] = fmaf(rows.at[r], columns.at[c], sums[g][r][c]);
        }
      }
    }
  }
}

/// factor · sums to the tile at `to`, of which `rows` rows and `columns` columns are there, `row_length`
/// apart. `fours`: every row starts at a multiple of four elements, and so does its end.
template <class T, int kGroups, bool kCounts>
__device__ void store_sums(T* to, std::int64_t row_length, int rows, int columns, bool fours,
                           const ThreadSums<kGroups>& sums, float factor, ThreadPlace at,
                           ByteCount<kCounts>& bytes) {
#pragma unroll
  for (int r = 0; r < kThreadRows; ++r) {
    if (at.row + r >= rows) return;
    T* row = to + (at.row + r) * row_length;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int column = g * kGroupColumns + at.column;
      Neighbours<T, kThreadColumns> v;
#pragma unroll
      for (int c = 0; c < kThreadColumns; ++c) v.at[c] = static_cast<T>(factor * sums[g][r][c]);
      if (fours) {
        if (column < columns) {
          store_together(row + column, v);
          bytes.wrote(sizeof v);
        }
        continue;
      }
#pragma unroll
      for (int c = 0; c < kThreadColumns; ++c) {
        if (column + c >= columns) continue;
        row[column + c] = v.at[c];
        bytes.wrote(sizeof(T));
      }
    }
  }
}

/// Whether store_sums() may take four elements at once.
template <class T>
bool in_fours(const void* memory, std::int64_t row_length) {
  return reinterpret_cast<std::uintptr_t>(memory) % (kThreadColumns * sizeof(T)) == 0 &&
         row_length % kThreadColumns == 0;
}

}  // namespace flashsim
