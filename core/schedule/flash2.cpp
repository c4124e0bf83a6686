// FlashAttention-2 forward (arXiv 2307.08691, Algorithm 1): query tiles outside, key/value tiles
// inside. O stays unnormalised on the chip until its row is done; O and L are written once.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

void walk_flash2(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  using enum Operation;
  listener.allocate(Operand::O, whole_size(Operand::O, grid.problem()));
  listener.allocate(Operand::L, whole_size(Operand::L, grid.problem()));
  listener.kernel("attention", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    listener.step(grid.on_rows(load, i, Operand::Q));
    listener.step(grid.on_rows(reset, i));
    const std::int64_t visited = grid.visited_key_tiles(i);
    for (std::int64_t j = 0; j < visited; ++j) {
      listener.step(grid.move(load, Operand::K, i, j));
      listener.step(grid.move(load, Operand::V, i, j));
      listener.step(grid.at(scores, i, j));
      listener.step(grid.mask(i, j));
      listener.step(grid.at(online_softmax, i, j));
      listener.step(grid.at(rescale, i, j));
      listener.step(grid.at(accumulate, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_rows(finish, i, Operand::L));
    listener.step(grid.on_rows(store, i, Operand::O));
    listener.step(grid.on_rows(store, i, Operand::L));
  }
}

}  // namespace flashsim
