// Attention as a framework runs it when it is spelled line by line: product, scale, mask (where the
// problem is causal), softmax, product. Every line is a pass over HBM with a result of its own.
#include "core/schedule/matrix_products.hpp"

namespace flashsim {
namespace {

/// One pass over S: every tile is loaded, worked on and stored into a fresh tensor.
void walk_pointwise(const TileGrid& grid, Range part, Operation operation, Listener& listener) {
  using enum Operation;
  listener.allocate(Operand::S, whole_size(Operand::S, grid.problem()));
  listener.kernel(name_of(operation), grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::S, i, j));
      listener.step(operation == mask ? grid.mask(i, j) : grid.at(operation, i, j));
      listener.step(grid.move(store, Operand::S, i, j));
    }
  }
  listener.release(Operand::S, whole_size(Operand::S, grid.problem()));
}

}  // namespace

void walk_eager(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  listener.allocate(Operand::S, whole_size(Operand::S, grid.problem()));
  walk_scores_product(grid, part, listener);
  walk_pointwise(grid, part, Operation::scale, listener);
  if (problem.causal) walk_pointwise(grid, part, Operation::mask, listener);
  listener.allocate(Operand::P, whole_size(Operand::P, grid.problem()));
  walk_row_softmax(grid, part, false, listener);
  // The caller still holds the scaled, masked scores while the product runs.
  listener.allocate(Operand::O, whole_size(Operand::O, grid.problem()));
  walk_output_product(grid, part, listener);
}

}  // namespace flashsim
