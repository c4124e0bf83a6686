// A tile of a matrix in shared memory, kDepth elements of two bytes a row: copied there asynchronously, read
// as fragments. Pieces of 16 bytes of a row change places by the row's number, so that the eight rows of a
// fragment's matrix lie in all 32 banks, whether they are read or written.
#pragma once

#include <cstdint>

#include "cuda/pieces/async_copy.cuh"
#include "cuda/pieces/storage.cuh"

namespace flashsim {

/// Elements of 16 bytes.
inline constexpr int kPieceElements = 8;

template <int kDepth>
struct SwizzledTile {
  static_assert(kDepth % 32 == 0, "rows are a multiple of 64 bytes");
  static constexpr int kPieces = kDepth / kPieceElements;  ///< of a row

  /// Where piece `piece` of row `row` lies, in bytes from the tile's start. Rows of 128, 256 and 512 bytes
  /// start in the same bank: eight rows take the eight places of 128 bytes. Rows of 64 and 192 bytes start in
  /// one of two: four pairs of rows take four places.
  __device__ static constexpr int offset(int row, int piece) {
    const int place = kPieces % 8 == 0 ? piece ^ (row & 7) : piece ^ ((row >> 1) & 3);
    return (row * kPieces + place) * 16;
  }

  static constexpr int kRowBytes = kPieces * 16;

  /// From the address of an even piece or its neighbour among the first kPlaces: `pieces` further in the same
  /// row. `pieces` is even, and the tile starts at a multiple of 128 bytes.
  __device__ static constexpr std::uint32_t further(std::uint32_t address, int pieces) {
    constexpr int kPlaces = kPieces % 8 == 0 ? 8 : 4;
    return (address ^ static_cast<std::uint32_t>(pieces % kPlaces * 16)) + pieces / kPlaces * kPlaces * 16;
  }
};

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// The same number, of which the compiler can't keep what follows from it in registers from one tile to the
/// next.
__device__ inline std::uint32_t followed_anew(std::uint32_t number) {
  asm volatile("" : "+r"(number));
  return number;
}

/// Where a row of a tile starts in memory. Of one that isn't there, any place that may be named.
template <class T>
struct MemoryRow {
  const T* at;
  bool there;
};

/// Starts copying kRows rows of a matrix with `columns` columns into a tile; what isn't there becomes 0.
/// `row_at(r)` is the MemoryRow of the tile's row r. `in_pieces`: every row starts at a multiple of 16 bytes
/// and is one long; else elements are copied one by one, and are there when the call returns. Other threads
/// see the tile after the group's end and a barrier, either way.
template <int kRows, int kDepth, int kThreads, class T, class RowAt>
__device__ inline void copy_rows(T* tile, const RowAt& row_at, int columns, bool in_pieces) {
  using Tile = SwizzledTile<kDepth>;
  char* const bytes = reinterpret_cast<char*>(tile);
  if (in_pieces) {
    constexpr int kAll = kRows * Tile::kPieces;
#pragma unroll
    for (int i = 0; i < (kAll + kThreads - 1) / kThreads; ++i) {
      const int n = i * kThreads + static_cast<int>(threadIdx.x);
      if (kAll % kThreads != 0 && n >= kAll) break;
      const int row = n / Tile::kPieces;
      const int piece = n % Tile::kPieces;
      const MemoryRow<T> from = row_at(row);
      const bool there = from.there && piece * kPieceElements < columns;
      copy_async<16>(bytes + Tile::offset(row, piece), there ? from.at + piece * kPieceElements : from.at,
                     there);
    }
  } else {
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x); n < kRows * kDepth; n += kThreads) {
      const int row = n / kDepth;
      const int column = n % kDepth;
      const MemoryRow<T> from = row_at(row);
      const bool there = from.there && column < columns;
      char* const to = bytes + Tile::offset(row, column / kPieceElements) + 2 * (column % kPieceElements);
      *reinterpret_cast<T*>(to) = there ? from.at[column] : static_cast<T>(0.0F);
    }
  }
}

/// The same for rows that lie one after the other in memory from `from` on, of which the first `rows` are
/// there.
template <int kRows, int kDepth, int kThreads, class T>
__device__ inline void copy_matrix(T* tile, const T* from, int rows, int columns, bool in_pieces) {
  using Tile = SwizzledTile<kDepth>;
  if constexpr (kThreads % Tile::kPieces == 0 && kRows * Tile::kPieces % kThreads == 0 &&
                kThreads / Tile::kPieces % 8 == 0) {
    if (in_pieces) {
      // A thread copies the same piece of every so manieth row: one pointer that steps along, and one place
      // that does.
      constexpr int kStep = kThreads / Tile::kPieces;
      const auto thread = static_cast<int>(followed_anew(threadIdx.x));
      const int row = thread / Tile::kPieces;
      const int piece = thread % Tile::kPieces;
      const int pieces_there = piece * kPieceElements < columns ? rows : 0;
      const std::int64_t step = std::int64_t{kStep} * columns;
      const T* at = from + (pieces_there > row ? std::int64_t{row} * columns + piece * kPieceElements : 0);
      char* to = reinterpret_cast<char*>(tile) + Tile::offset(row, piece);
#pragma unroll
      for (int i = 0; i < kRows / kStep; ++i) {
        const bool there = row + i * kStep < pieces_there;
        copy_async<16>(to + i * kStep * Tile::kRowBytes, at, there);
        if (row + (i + 1) * kStep < pieces_there) at += step;
      }
      return;
    }
  }
  copy_rows<kRows, kDepth, kThreads>(
      tile,
      [&](int row) {
        return MemoryRow<T>{row < rows ? from + row * columns : from, row < rows};
      },
      columns, in_pieces);
}

}  // namespace flashsim
