// Eager attention backward: what automatic differentiation makes of the forward lines, last line first. Each
// has a kernel and a result of its own, but for the mask: what was added to the scores has their gradient, so
// nothing is done. A gradient is given back once the next is made from it; what forward kept stays.
#include "core/schedule/matrix_gradients.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// One pass over the gradient of the scores' size: every tile is loaded, with `beside` where that isn't the
/// gradient itself, worked on and stored into a fresh tensor.
void walk_pass(const TileGrid& grid, std::string_view kernel, Operation operation, Operand gradient,
               Operand beside, Listener& listener) {
  const Bytes size = whole_size(gradient, grid.problem());
  listener.allocate(gradient, size);
  listener.kernel(kernel, grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.block();
      listener.step(grid.move(load, gradient, i, j));
      if (beside != gradient) listener.step(grid.move(load, beside, i, j));
      listener.step(grid.move(operation, gradient, i, j));
      listener.step(grid.move(store, gradient, i, j));
    }
  }
  listener.release(gradient, size);
}

}  // namespace

void walk_eager_backward(const Problem& problem, const Method& method, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  const EagerPasses& passes = method.passes;
  const Operand weights = passes.dropout ? Operand::P_dropped : Operand::P;
  walk_key_side(grid, value_gradient, weights, Operand::dO, Operand::dV, listener);
  walk_probability_gradient(grid, listener);
  if (passes.dropout) walk_pass(grid, "dropout_gradient", dropout, Operand::dP, Operand::Z, listener);
  listener.allocate(Operand::dS, whole_size(Operand::dS, problem));
  walk_score_gradient(grid, listener);
  listener.release(Operand::dP, whole_size(Operand::dP, problem));
  if (passes.scale) walk_pass(grid, "scale_gradient", scale, Operand::dS, Operand::dS, listener);
  walk_query_gradient(grid, listener);
  walk_key_side(grid, key_gradient, Operand::dS, Operand::Q, Operand::dK, listener);
}

}  // namespace flashsim
