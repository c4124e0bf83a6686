// FlashAttention-2 backward (arXiv 2307.08691, Algorithm 2): key/value tiles outside, query tiles inside. S
// and P are computed again from Q, K and L. dK and dV stay on the chip until done; every key tile adds to dQ
// in HBM, in the accumulation type; where that isn't the storage type it is a tensor of its own, converted in
// the end.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// What key tiles add to.
Operand query_gradient_sum(const Problem& problem) {
  return problem.storage == problem.accumulation() ? Operand::dQ : Operand::dQ_sum;
}

/// D = Σ dO ∘ O, and dQ's starting zeros: a thread block for every query tile.
void walk_deltas(const TileGrid& grid, Operand sum, Range part, Listener& listener) {
  listener.allocate(Operand::D, whole_size(Operand::D, grid.problem()));
  listener.allocate(sum, whole_size(sum, grid.problem()));
  listener.kernel("deltas", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.step(grid.on_rows(initialise, i, sum));
    listener.step(grid.on_rows(load, i, Operand::O));
    listener.step(grid.on_rows(load, i, Operand::dO));
    listener.step(grid.on_rows(row_dot, i));
    listener.step(grid.on_rows(store, i, Operand::D));
  }
}

/// A thread block for every key tile.
void walk_gradients(const TileGrid& grid, Operand sum, Range part, Listener& listener) {
  listener.allocate(Operand::dK, whole_size(Operand::dK, grid.problem()));
  listener.allocate(Operand::dV, whole_size(Operand::dV, grid.problem()));
  listener.kernel("gradients", grid.key_tiles());
  for (std::int64_t j = part.begin; j < part.end; ++j) {
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
      listener.step(grid.at(scores, i, j));
      listener.step(grid.mask(i, j));
      listener.step(grid.at(probabilities, i, j));
      listener.step(grid.at(value_gradient, i, j));
      listener.step(grid.at(probability_gradient, i, j));
      listener.step(grid.at(score_gradient, i, j));
      listener.step(grid.move(load, sum, i, j));
      listener.step(grid.at(query_gradient, i, j));
      listener.step(grid.move(store, sum, i, j));
      listener.step(grid.at(key_gradient, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_keys(store, j, Operand::dK));
    listener.step(grid.on_keys(store, j, Operand::dV));
  }
}

/// dQ in the storage type.
void walk_conversion(const TileGrid& grid, Range part, Listener& listener) {
  listener.allocate(Operand::dQ, whole_size(Operand::dQ, grid.problem()));
  listener.kernel("conversion", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.step(grid.on_rows(load, i, Operand::dQ_sum));
    listener.step(grid.on_rows(store, i, Operand::dQ));
  }
}

}  // namespace

void walk_flash2_backward(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                          Listener& listener) {
  const TileGrid grid(problem, tiling);
  const Operand sum = query_gradient_sum(problem);
  switch (kernel) {
    case BackwardKernel::deltas: return walk_deltas(grid, sum, tiles, listener);
    case BackwardKernel::gradients: return walk_gradients(grid, sum, tiles, listener);
    case BackwardKernel::conversion:
      if (sum == Operand::dQ_sum) walk_conversion(grid, tiles, listener);
  }
}

}  // namespace flashsim
