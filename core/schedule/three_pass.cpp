// Tiled attention without the online softmax: three passes over the keys of a query tile, for the maximum,
// for the denominator and for the output. Either S is computed anew in each pass, or the first stores it for
// the others.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// S_ij on the chip, masked, from K_j.
void make_scores(const TileGrid& grid, std::int64_t i, std::int64_t j, Listener& listener) {
  listener.step(grid.at(scores, i, j));
  listener.step(grid.mask(i, j));
}

}  // namespace

void walk_three_pass(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  const bool stored = method.algorithm == Algorithm::three_pass_stored;
  if (stored) listener.allocate(Operand::S, whole_size(Operand::S, grid.problem()));
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
      make_scores(grid, i, j, listener);
      if (stored) listener.step(grid.move(store, Operand::S, i, j));
      listener.step(grid.at(row_maximum, i, j));
      listener.step(grid.at(discard, i, j));
    }
    for (std::int64_t j = 0; j < visited; ++j) {
      listener.step(grid.move(load, stored ? Operand::S : Operand::K, i, j));
      if (!stored) make_scores(grid, i, j, listener);
      listener.step(grid.at(denominator, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_rows(finish, i, Operand::l));
    for (std::int64_t j = 0; j < visited; ++j) {
      listener.step(grid.move(load, stored ? Operand::S : Operand::K, i, j));
      listener.step(grid.move(load, Operand::V, i, j));
      if (!stored) make_scores(grid, i, j, listener);
      listener.step(grid.move(probabilities, Operand::l, i, j));
      listener.step(grid.at(accumulate, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_rows(store, i, Operand::O));
    listener.step(grid.on_rows(store, i, Operand::L));
  }
}

}  // namespace flashsim
