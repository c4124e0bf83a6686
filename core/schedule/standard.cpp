// Standard attention (arXiv 2205.14135, Algorithm 0): three kernels, the whole score matrix in HBM,
// causal or not. The first scales as it multiplies, the second masks and normalises in one pass, and P
// overwrites S.
#include "core/schedule/matrix_products.hpp"

namespace flashsim {

void walk_standard(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  listener.allocate(Operand::S, whole_size(Operand::S, grid.problem()));
  walk_scores_product(grid, part, listener);
  walk_row_softmax(grid, part, true, listener);
  listener.allocate(Operand::O, whole_size(Operand::O, grid.problem()));
  walk_output_product(grid, part, listener);
}

}  // namespace flashsim
