// FlashAttention backward (arXiv 2205.14135, Algorithm 4): key/value tiles outside, query tiles inside, one
// thread block a head. S and P are computed again from Q, K, m and l, and D for every visited pair anew. dK
// and dV stay on the chip until done and are written whole; dQ goes to HBM and comes back for every key/value
// tile, in the storage type, from zeros on.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

void walk_flash1_backward(const Problem& problem, const Method& method, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  using enum Operation;
  for (const Operand result : {Operand::dQ, Operand::dK, Operand::dV}) {
    listener.allocate(result, whole_size(result, problem));
  }
  listener.kernel("gradients", 1);
  listener.block();
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i)
    listener.step(grid.on_rows(initialise, i, Operand::dQ));
  for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
    const std::int64_t first = grid.first_visitor(j);
    if (first < grid.query_tiles()) {
      listener.step(grid.on_keys(load, j, Operand::K));
      listener.step(grid.on_keys(load, j, Operand::V));
    }
    listener.step(grid.on_keys(reset, j, Operand::dK));
    for (std::int64_t i = first; i < grid.query_tiles(); ++i) {
      for (const Operand operand :
           {Operand::Q, Operand::O, Operand::dO, Operand::dQ, Operand::l, Operand::m}) {
        listener.step(grid.move(load, operand, i, j));
      }
      listener.step(grid.at(scores, i, j));
      listener.step(grid.mask(i, j));
      listener.step(grid.move(probabilities, Operand::m, i, j));
      listener.step(grid.at(value_gradient, i, j));
      listener.step(grid.at(probability_gradient, i, j));
      listener.step(grid.at(row_dot, i, j));
      listener.step(grid.at(score_gradient, i, j));
      listener.step(grid.at(query_gradient, i, j));
      listener.step(grid.move(store, Operand::dQ, i, j));
      listener.step(grid.at(key_gradient, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_keys(store, j, Operand::dK));
    listener.step(grid.on_keys(store, j, Operand::dV));
  }
}

}  // namespace flashsim
