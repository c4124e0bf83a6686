// The order of FlashAttention-2: query tiles outside, key/value tiles inside, a thread block for every query
// tile. Which key tiles a query tile visits is told by `next`, so that a pattern may leave some out.
#pragma once

#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// `next(i, j)` is the first key tile from j on that query tile i visits, were none of them masked.
template <class Next>
void walk_query_tiles_outside(const Problem& problem, Tiling tiling, Range part, Listener& listener,
                              Next next) {
  const TileGrid grid(problem, tiling);
  using enum Operation;
  listener.allocate(Operand::O, whole_size(Operand::O, problem));
  listener.allocate(Operand::L, whole_size(Operand::L, problem));
  listener.kernel("attention", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    listener.step(grid.on_rows(load, i, Operand::Q));
    listener.step(grid.on_rows(reset, i));
    const std::int64_t visited = grid.visited_key_tiles(i);
    for (std::int64_t j = next(i, 0); j < visited; j = next(i, j + 1)) {
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
