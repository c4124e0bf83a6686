// The query heads of a group as one head (core/problem: packed_heads): packed row r is query r / G of the
// group's head r % G. So a key/value head serves its whole group at once.
#pragma once

#include <cstdint>

namespace flashsim {

/// A packed row: which query it is, and where among the group's [G, N] rows it lies in memory.
struct PackedRow {
  std::int64_t query;
  std::int64_t place;
};

/// Some packed rows, one after the other. With G = 1 nothing is divided.
struct PackedRows {
  std::int64_t seq;     ///< N
  std::int64_t first;   ///< query of row 0
  unsigned first_head;  ///< of the group, of row 0
  unsigned group;       ///< G

  __device__ static PackedRows from(std::int64_t row, std::int64_t seq, unsigned group) {
    if (group == 1) return {seq, row, 0, 1};
    return {seq, row / group, static_cast<unsigned>(row % group), group};
  }
  __device__ PackedRow operator[](int row) const {
    if (group == 1) return {first + row, first + row};
    const unsigned heads = first_head + static_cast<unsigned>(row);
    const std::int64_t query = first + heads / group;
    return {query, heads % group * seq + query};
  }
  __device__ std::int64_t query_of(int row) const {
    return group == 1 ? first + row : first + (first_head + static_cast<unsigned>(row)) / group;
  }
};

}  // namespace flashsim
