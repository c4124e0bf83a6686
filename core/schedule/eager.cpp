// Attention as a framework runs it when it is spelled line by line: product, scale, mask, softmax, dropout,
// product. Every line is a pass over HBM with a result of its own, unless the method fuses it into its
// neighbour: scale into the product, mask into the softmax.
#include "core/schedule/matrix_products.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// One pass over S: every tile is loaded, worked on and stored into a fresh tensor.
template <class Work>
void walk_pointwise(const TileGrid& grid, Range part, Operation operation, Listener& listener, Work work) {
  listener.allocate(Operand::S, whole_size(Operand::S, grid.problem()));
  listener.kernel(name_of(operation), grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.block();
      listener.step(grid.move(load, Operand::S, i, j));
      listener.step(work(i, j));
      listener.step(grid.move(store, Operand::S, i, j));
    }
  }
  listener.release(Operand::S, whole_size(Operand::S, grid.problem()));
}

/// What is left of P, and which of it: both are kept for the gradient, as P is.
void walk_dropout(const TileGrid& grid, Range part, Listener& listener) {
  for (const Operand made : {Operand::P_dropped, Operand::Z}) {
    listener.allocate(made, whole_size(made, grid.problem()));
  }
  listener.kernel("dropout", grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.block();
      listener.step(grid.move(load, Operand::P, i, j));
      listener.step(grid.move(dropout, Operand::P, i, j));
      listener.step(grid.move(store, Operand::P_dropped, i, j));
      listener.step(grid.move(store, Operand::Z, i, j));
    }
  }
}

}  // namespace

void walk_eager(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  const EagerPasses& passes = method.passes;
  listener.allocate(Operand::S, whole_size(Operand::S, problem));
  walk_scores_product(grid, part, listener);
  if (passes.scale) {
    walk_pointwise(grid, part, scale, listener, [&](auto i, auto j) { return grid.at(scale, i, j); });
  }
  if (masks_in_a_pass(problem, method)) {
    walk_pointwise(grid, part, mask, listener, [&](auto i, auto j) {
      Step step = grid.mask(i, j);
      if (!problem.causal) step.idle = false;
      return step;
    });
  }
  listener.allocate(Operand::P, whole_size(Operand::P, problem));
  walk_row_softmax(grid, part, problem.causal && !masks_in_a_pass(problem, method), listener);
  if (passes.dropout) walk_dropout(grid, part, listener);
  // The caller still holds the scaled, masked scores while the product runs.
  listener.allocate(Operand::O, whole_size(Operand::O, problem));
  walk_output_product(grid, part, listener, passes.dropout ? Operand::P_dropped : Operand::P);
}

}  // namespace flashsim
