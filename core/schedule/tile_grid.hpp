// The grid of (query tile, key tile) pairs of one head: where each tile lies and which pairs the mask
// leaves to visit. Tiles at the ragged edge are as long as their valid rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem/mask.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

class TileGrid {
 public:
  TileGrid(const Problem& problem, Tiling tiling) : problem_(problem), tiling_(tiling) {}

  [[nodiscard]] const Problem& problem() const { return problem_; }

  /// The numbers of all tiles.
  [[nodiscard]] Range every_query_tile() const { return {0, query_tiles()}; }
  [[nodiscard]] Range every_key_tile() const { return {0, key_tiles()}; }

  /// Tr = ⌈N / Br⌉.
  [[nodiscard]] std::int64_t query_tiles() const { return tiles(problem_.seq, tiling_.query_rows); }
  /// Tc = ⌈Nkv / Bc⌉.
  [[nodiscard]] std::int64_t key_tiles() const { return tiles(problem_.kv_seq, tiling_.key_rows); }

  [[nodiscard]] Range rows(std::int64_t i) const { return range(i, tiling_.query_rows, problem_.seq); }
  [[nodiscard]] Range keys(std::int64_t j) const { return range(j, tiling_.key_rows, problem_.kv_seq); }
  [[nodiscard]] Range all_keys() const { return {0, problem_.kv_seq}; }

  /// Key tiles 0 … n−1 hold a key that some row of query tile i sees: the last row sees the most.
  [[nodiscard]] std::int64_t visited_key_tiles(std::int64_t i) const {
    return tiles(visible_keys(problem_, rows(i).end - 1), tiling_.key_rows);
  }
  /// The first query tile that visits key tile j; query_tiles() where none does.
  [[nodiscard]] std::int64_t first_visitor(std::int64_t j) const {
    std::int64_t low = 0;
    std::int64_t high = query_tiles();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (visited_key_tiles(middle) > j) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  /// Every row of query tile i sees every key of key tile j: the first row sees the fewest.
  [[nodiscard]] bool visible_whole(std::int64_t i, std::int64_t j) const {
    return visible_keys(problem_, rows(i).begin) >= keys(j).end;
  }

  /// The step of `operation` on pair (i, j).
  [[nodiscard]] Step at(Operation operation, std::int64_t i, std::int64_t j) const {
    return {.operation = operation, .query_tile = i, .key_tile = j, .rows = rows(i), .keys = keys(j)};
  }
  /// The move of `operand` at pair (i, j), or a step of `operation` that the operand says more about.
  [[nodiscard]] Step move(Operation operation, Operand operand, std::int64_t i, std::int64_t j,
                          bool again = false) const {
    Step step = at(operation, i, j);
    step.operand = operand;
    step.again = again;
    return step;
  }
  /// The mask of pair (i, j), idle where there is nothing to mask.
  [[nodiscard]] Step mask(std::int64_t i, std::int64_t j) const {
    Step step = at(Operation::mask, i, j);
    step.idle = visible_whole(i, j);
    return step;
  }
  /// A step on key tile j that belongs to no query tile alone.
  [[nodiscard]] Step on_keys(Operation operation, std::int64_t j, Operand operand) const {
    return {.operation = operation,
            .operand = operand,
            .key_tile = j,
            .rows = {0, problem_.seq},
            .keys = keys(j)};
  }
  /// A step on the whole row block of query tile i.
  [[nodiscard]] Step on_rows(Operation operation, std::int64_t i, Operand operand = {}) const {
    return {.operation = operation, .operand = operand, .query_tile = i, .rows = rows(i), .keys = all_keys()};
  }

 private:
  static std::int64_t tiles(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }
  static Range range(std::int64_t tile, std::int64_t size, std::int64_t length) {
    return {tile * size, std::min((tile + 1) * size, length)};
  }

  const Problem& problem_;
  Tiling tiling_;
};

}  // namespace flashsim
