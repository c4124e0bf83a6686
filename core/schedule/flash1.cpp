// FlashAttention forward (arXiv 2205.14135, Algorithm 1): key/value tiles outside, query tiles inside.
// O, normalised each time, and l and m go to HBM and come back for every key/value tile.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

void walk_flash1(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  using enum Operation;
  constexpr std::array kState{Operand::O, Operand::l, Operand::m};
  for (const Operand state : kState) listener.allocate(state, whole_size(state, grid.problem()));
  listener.kernel("attention", 1);
  listener.block();
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (const Operand state : kState) listener.step(grid.on_rows(initialise, i, state));
  }
  // The last query tile sees the most keys, so what it doesn't visit no other does.
  const std::int64_t reached = grid.visited_key_tiles(part.end - 1);
  for (std::int64_t j = 0; j < reached; ++j) {
    bool loaded = false;
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      if (j >= grid.visited_key_tiles(i)) continue;
      if (!loaded) {
        for (const Operand operand : {Operand::K, Operand::V}) {
          Step step = grid.on_keys(load, j, operand);
          step.elsewhere = grid.first_visitor(j) < part.begin;
          listener.step(step);
        }
        loaded = true;
      }
      listener.step(grid.move(load, Operand::Q, i, j));
      for (const Operand state : kState) listener.step(grid.move(load, state, i, j));
      listener.step(grid.at(scores, i, j));
      listener.step(grid.mask(i, j));
      listener.step(grid.at(online_softmax, i, j));
      listener.step(grid.at(rescale, i, j));
      listener.step(grid.at(accumulate, i, j));
      listener.step(grid.at(finish, i, j));
      for (const Operand state : kState) listener.step(grid.move(store, state, i, j));
      listener.step(grid.at(discard, i, j));
    }
  }
}

}  // namespace flashsim
