// The two tiled matrix products that `standard` and `eager` share: each a kernel that keeps no tile
// on the chip beyond its own output, so that its operands cross into the SMs again for every tile.
#pragma once

#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// S = Q Kᵀ, a thread block for every tile of S.
inline void walk_scores_product(const TileGrid& grid, Range part, Listener& listener) {
  using enum Operation;
  listener.kernel("scores", grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.block();
      listener.step(grid.move(load, Operand::Q, i, j, j > 0));
      listener.step(grid.move(load, Operand::K, i, j, i > 0));
      listener.step(grid.at(scores, i, j));
      listener.step(grid.move(store, Operand::S, i, j));
    }
  }
}

/// P = softmax(S) over whole rows, a thread block for every query tile; `masked` fuses the mask in.
inline void walk_row_softmax(const TileGrid& grid, Range part, bool masked, Listener& listener) {
  using enum Operation;
  listener.kernel("softmax", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::S, i, j));
      if (masked) listener.step(grid.mask(i, j));
    }
    listener.step(grid.on_rows(softmax, i));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(store, Operand::P, i, j));
    }
  }
}

/// O = P V, with P or what dropout left of it, a thread block for every query tile.
inline void walk_output_product(const TileGrid& grid, Range part, Listener& listener,
                                Operand weights = Operand::P) {
  using enum Operation;
  listener.kernel("output", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    listener.step(grid.on_rows(reset, i));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, weights, i, j));
      listener.step(grid.move(load, Operand::V, i, j, i > 0));
      listener.step(grid.at(accumulate, i, j));
    }
    listener.step(grid.on_rows(store, i, Operand::O));
  }
}

}  // namespace flashsim
