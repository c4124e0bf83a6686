// The vocabulary of the walks: one Step is one operation on one tile.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/problem/operands.hpp"
#include "core/problem/operation.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// Rows or keys [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
};

struct Step {
  Operation operation{};
  Operand operand{};             ///< what is moved; means something for initialise, load and store
  std::int64_t query_tile = -1;  ///< i, or −1 where the step belongs to no query tile
  std::int64_t key_tile = -1;    ///< j, or −1 where the step belongs to no key tile
  std::int64_t part = -1;        ///< which part of the keys, where they are split into parts
  Range rows;                    ///< valid rows of query tile i
  Range keys;                    ///< valid rows of key tile j (softmax: all keys; reset of a part: its keys)
  bool again = false;            ///< a load of what this kernel has already loaded: it crosses into the
                                 ///< SM once more, and in the papers' model HBM was read the first time
  bool in_l2 = false;            ///< a load of what is added to where it lies: it doesn't cross into the SM
  bool idle = false;             ///< a mask on a tile that is visible whole: nothing is done
  bool elsewhere = false;        ///< where a walk is taken in parts: an earlier part makes this step too, and
                                 ///< there it counts
};

/// Elements of the tile that a load, store or initialise moves.
constexpr Count tile_elements(const Step& step, const Problem& problem) {
  switch (shape_of(step.operand)) {
    case OperandShape::key_rows: return Count(step.keys.size()) * problem.head_dim;
    case OperandShape::query_rows: return Count(step.rows.size()) * problem.head_dim;
    case OperandShape::scores: return Count(step.rows.size()) * step.keys.size();
    case OperandShape::row_statistic: return step.rows.size();
  }
  return 0;
}

/// Bytes of that tile.
constexpr Bytes tile_bytes(const Step& step, const Problem& problem) {
  return Bytes(tile_elements(step, problem) * element_size(step.operand, problem));
}

}  // namespace flashsim
