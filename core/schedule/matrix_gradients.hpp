// The kernels backward that `standard` and `eager` share: four tiled matrix products and the softmax's
// gradient, over whole matrices, causal or not. None keeps a tile on the chip beyond its own output, so that
// operands cross into the SMs again for every tile.
#pragma once

#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// dV = Pᵀ dO or dK = dSᵀ Q: a thread block for every key tile.
inline void walk_key_side(const TileGrid& grid, Operation product, Operand weights, Operand rows,
                          Operand result, Listener& listener) {
  using enum Operation;
  listener.allocate(result, whole_size(result, grid.problem()));
  listener.kernel(name_of(product), grid.key_tiles());
  for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
    listener.block();
    listener.step(grid.on_keys(reset, j, result));
    for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
      listener.step(grid.move(load, weights, i, j));
      listener.step(grid.move(load, rows, i, j, j > 0));
      listener.step(grid.at(product, i, j));
    }
    listener.step(grid.on_keys(store, j, result));
  }
}

/// dP = dO Vᵀ: a thread block for every tile.
inline void walk_probability_gradient(const TileGrid& grid, Listener& listener) {
  using enum Operation;
  listener.allocate(Operand::dP, whole_size(Operand::dP, grid.problem()));
  listener.kernel("probability_gradient", grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.block();
      listener.step(grid.move(load, Operand::dO, i, j, j > 0));
      listener.step(grid.move(load, Operand::V, i, j, i > 0));
      listener.step(grid.at(probability_gradient, i, j));
      listener.step(grid.move(store, Operand::dP, i, j));
    }
  }
}

/// dS = P ∘ (dP − Σ P ∘ dP), row block by row block.
inline void walk_score_gradient(const TileGrid& grid, Listener& listener) {
  using enum Operation;
  listener.kernel("score_gradient", grid.query_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    listener.block();
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::P, i, j));
      listener.step(grid.move(load, Operand::dP, i, j));
    }
    listener.step(grid.on_rows(row_dot, i, Operand::P));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.at(score_gradient, i, j));
      listener.step(grid.move(store, Operand::dS, i, j));
    }
  }
}

/// dQ = dS K: a thread block for every query tile.
inline void walk_query_gradient(const TileGrid& grid, Listener& listener) {
  using enum Operation;
  listener.allocate(Operand::dQ, whole_size(Operand::dQ, grid.problem()));
  listener.kernel("query_gradient", grid.query_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    listener.block();
    listener.step(grid.on_rows(reset, i, Operand::dQ));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::dS, i, j));
      listener.step(grid.move(load, Operand::K, i, j, i > 0));
      listener.step(grid.at(query_gradient, i, j));
    }
    listener.step(grid.on_rows(store, i, Operand::dQ));
  }
}

}  // namespace flashsim
