// Standard attention backward (arXiv 2205.14135, Algorithm 3): five kernels over whole matrices. P comes from
// the forward pass, dS overwrites dP, and the products for dQ and dK scale as they multiply.
#include "core/schedule/matrix_gradients.hpp"

namespace flashsim {

void walk_standard_backward(const Problem& problem, const Method& method, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  using enum Operation;
  walk_key_side(grid, value_gradient, Operand::P, Operand::dO, Operand::dV, listener);
  walk_probability_gradient(grid, listener);
  walk_score_gradient(grid, listener);
  walk_query_gradient(grid, listener);
  walk_key_side(grid, key_gradient, Operand::dS, Operand::Q, Operand::dK, listener);
}

}  // namespace flashsim
