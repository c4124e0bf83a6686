// Standard attention backward (arXiv 2205.14135, Algorithm 3): five kernels over whole matrices. P comes from
// the forward pass, dS overwrites dP.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// dV = Pᵀ dO or dK = scale · dSᵀ Q: a thread block for every key tile.
void walk_key_side(const TileGrid& grid, Operation product, Operand weights, Operand rows, Operand result,
                   Listener& listener) {
  listener.allocate(result, whole_size(result, grid.problem()));
  listener.kernel(name_of(product), grid.key_tiles());
  for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
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
void walk_probability_gradient(const TileGrid& grid, Listener& listener) {
  listener.allocate(Operand::dP, whole_size(Operand::dP, grid.problem()));
  listener.kernel("probability_gradient", grid.query_tiles() * grid.key_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::dO, i, j, j > 0));
      listener.step(grid.move(load, Operand::V, i, j, i > 0));
      listener.step(grid.at(probability_gradient, i, j));
      listener.step(grid.move(store, Operand::dP, i, j));
    }
  }
}

/// dS = P ∘ (dP − Σ P ∘ dP), row block by row block.
void walk_score_gradient(const TileGrid& grid, Listener& listener) {
  listener.kernel("score_gradient", grid.query_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
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

/// dQ = scale · dS K: a thread block for every query tile.
void walk_query_gradient(const TileGrid& grid, Listener& listener) {
  listener.allocate(Operand::dQ, whole_size(Operand::dQ, grid.problem()));
  listener.kernel("query_gradient", grid.query_tiles());
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    listener.step(grid.on_rows(reset, i, Operand::dQ));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(grid.move(load, Operand::dS, i, j));
      listener.step(grid.move(load, Operand::K, i, j, i > 0));
      listener.step(grid.at(query_gradient, i, j));
    }
    listener.step(grid.on_rows(store, i, Operand::dQ));
  }
}

}  // namespace

void walk_standard_backward(const Problem& problem, Tiling tiling, Listener& listener) {
  const TileGrid grid(problem, tiling);
  walk_key_side(grid, value_gradient, Operand::P, Operand::dO, Operand::dV, listener);
  walk_probability_gradient(grid, listener);
  walk_score_gradient(grid, listener);
  walk_query_gradient(grid, listener);
  walk_key_side(grid, key_gradient, Operand::dS, Operand::Q, Operand::dK, listener);
}

}  // namespace flashsim
