// FlashAttention-2 backward (arXiv 2307.08691, Algorithm 2): key/value tiles outside, query tiles inside. S
// and P are computed again from Q, K and L. dK and dV stay on the chip until done; every key tile adds to dQ
// in HBM, in the accumulation type; where that isn't the storage type it is a tensor of its own, converted in
// the end.
//
// On a GPU the L2 can do the sum (sums_in_l2): a block sends what it adds, and reads nothing. The query heads
// of a group can be packed (packs_groups): then dK and dV are summed over the group on the chip.
//
// Which thread block adds first is chance on a GPU, and the last bits with it. Deterministic, no block adds
// to what another made: dQ has a kernel of its own, query tiles outside, that computes S, P and dP once more.
#include <optional>

#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// What key tiles add to.
Operand query_gradient_sum(const Problem& problem) {
  return problem.storage == problem.accumulation() ? Operand::dQ : Operand::dQ_sum;
}

/// D = Σ dO ∘ O, and the starting zeros of dQ's sum where there is one: a thread block for every query tile.
void walk_deltas(const TileGrid& grid, std::optional<Operand> sum, Range part, Listener& listener) {
  listener.allocate(Operand::D, whole_size(Operand::D, grid.problem()));
  if (sum) listener.allocate(*sum, whole_size(*sum, grid.problem()));
  listener.kernel("deltas", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    if (sum) listener.step(grid.on_rows(initialise, i, *sum));
    listener.step(grid.on_rows(load, i, Operand::O));
    listener.step(grid.on_rows(load, i, Operand::dO));
    listener.step(grid.on_rows(row_dot, i));
    listener.step(grid.on_rows(store, i, Operand::D));
  }
}

/// Scores to dS of pair (i, j); `of_values` adds to dV on the way.
void walk_score_gradient(const TileGrid& grid, bool of_values, std::int64_t i, std::int64_t j,
                         Listener& listener) {
  listener.step(grid.at(scores, i, j));
  listener.step(grid.mask(i, j));
  listener.step(grid.at(probabilities, i, j));
  if (of_values) listener.step(grid.at(value_gradient, i, j));
  listener.step(grid.at(probability_gradient, i, j));
  listener.step(grid.at(score_gradient, i, j));
}

/// A thread block for every key tile. It adds to `sum` where that isn't left to a kernel of its own; `in_l2`:
/// by sending what is to be added, and not by loading the sum.
void walk_gradients(const TileGrid& grid, std::optional<Operand> sum, bool in_l2, Range part,
                    Listener& listener) {
  listener.allocate(Operand::dK, whole_size(Operand::dK, grid.problem()));
  listener.allocate(Operand::dV, whole_size(Operand::dV, grid.problem()));
  listener.kernel(sum ? "gradients" : "key_value_gradients", grid.key_tiles());
  for (std::int64_t j = part.begin; j < part.end; ++j) {
    listener.block();
    const std::int64_t first = grid.first_visitor(j);
    if (first < grid.query_tiles()) {
      listener.step(grid.on_keys(load, j, Operand::K));
      listener.step(grid.on_keys(load, j, Operand::V));
    }
    listener.step(grid.on_keys(reset, j, Operand::dK));
    for (std::int64_t i = first; i < grid.query_tiles(); ++i) {
      for (const Operand operand : {Operand::Q, Operand::dO, Operand::L, Operand::D}) {
        listener.step(grid.move(load, operand, i, j));
      }
      walk_score_gradient(grid, true, i, j, listener);
      if (sum) {
        Step read = grid.move(load, *sum, i, j);
        read.in_l2 = in_l2;
        listener.step(read);
        listener.step(grid.at(query_gradient, i, j));
        listener.step(grid.move(store, *sum, i, j));
      }
      listener.step(grid.at(key_gradient, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_keys(store, j, Operand::dK));
    listener.step(grid.on_keys(store, j, Operand::dV));
  }
}

/// dQ, summed on the chip and stored once: a thread block for every query tile.
void walk_query_gradient(const TileGrid& grid, Listener& listener) {
  listener.allocate(Operand::dQ, whole_size(Operand::dQ, grid.problem()));
  listener.kernel("query_gradient", grid.query_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    listener.block();
    for (const Operand operand : {Operand::Q, Operand::dO, Operand::L, Operand::D}) {
      listener.step(grid.on_rows(load, i, operand));
    }
    listener.step(grid.on_rows(reset, i, Operand::dQ));
    const std::int64_t visited = grid.visited_key_tiles(i);
    for (std::int64_t j = 0; j < visited; ++j) {
      listener.step(grid.move(load, Operand::K, i, j));
      listener.step(grid.move(load, Operand::V, i, j));
      walk_score_gradient(grid, false, i, j, listener);
      listener.step(grid.at(query_gradient, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_rows(store, i, Operand::dQ));
  }
}

/// dQ in the storage type.
void walk_conversion(const TileGrid& grid, Range part, Listener& listener) {
  listener.allocate(Operand::dQ, whole_size(Operand::dQ, grid.problem()));
  listener.kernel("conversion", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    listener.step(grid.on_rows(load, i, Operand::dQ_sum));
    listener.step(grid.on_rows(store, i, Operand::dQ));
  }
}

}  // namespace

void walk_flash2_backward(const Problem& problem, const Method& method, Listener& listener) {
  const Problem walked = walked_problem(problem, method);
  const TileGrid grid(walked, method.tiling);
  if (method.deterministic) {
    walk_deltas(grid, std::nullopt, grid.every_query_tile(), listener);
    walk_gradients(grid, std::nullopt, false, grid.every_key_tile(), listener);
    return walk_query_gradient(grid, listener);
  }
  const Operand sum = query_gradient_sum(walked);
  walk_deltas(grid, sum, grid.every_query_tile(), listener);
  walk_gradients(grid, sum, method.sums_in_l2, grid.every_key_tile(), listener);
  if (sum == Operand::dQ_sum) walk_conversion(grid, grid.every_query_tile(), listener);
}

void walk_flash2_backward(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                          Listener& listener) {
  const TileGrid grid(problem, tiling);
  const Operand sum = query_gradient_sum(problem);
  switch (kernel) {
    case BackwardKernel::deltas: return walk_deltas(grid, sum, tiles, listener);
    case BackwardKernel::gradients: return walk_gradients(grid, sum, false, tiles, listener);
    case BackwardKernel::conversion:
      if (sum == Operand::dQ_sum) walk_conversion(grid, tiles, listener);
  }
}

}  // namespace flashsim
