#include "core/schedule/walk.hpp"

#include <cassert>

#include "core/schedule/tile_grid.hpp"

namespace flashsim {
namespace {

/// Hands on the steps alone: kernels and memory belong to the first part of a walk.
class StepsAlone : public Listener {
 public:
  explicit StepsAlone(Listener& next) : next_(next) {}
  void step(const Step& step) override { next_.step(step); }

 private:
  Listener& next_;
};

void walk_forward(const Problem& problem, const Method& method, Range part, Listener& listener) {
  switch (method.algorithm) {
    case Algorithm::standard: return walk_standard(problem, method, part, listener);
    case Algorithm::eager: return walk_eager(problem, method, part, listener);
    case Algorithm::flash1: return walk_flash1(problem, method, part, listener);
    case Algorithm::flash2: return walk_flash2(problem, method, part, listener);
    case Algorithm::split_kv: return walk_split_kv(problem, method, part, listener);
    case Algorithm::block_sparse: return walk_block_sparse(problem, method, part, listener);
  }
}

}  // namespace

Range query_tiles_of(const Problem& problem, const Method& method) {
  const bool packs = method.algorithm == Algorithm::split_kv;
  return TileGrid(packs ? packed_heads(problem) : problem, method.tiling).every_query_tile();
}

void walk(const Problem& problem, const Method& method, Listener& listener) {
  if (method.pass != Pass::backward) {
    walk_forward(problem, method, query_tiles_of(problem, method), listener);
  }
  if (method.pass != Pass::forward) walk_backward(method.algorithm, problem, method.tiling, listener);
}

void walk_part(const Problem& problem, const Method& method, Range query_tiles, Listener& listener) {
  if (query_tiles.begin == 0) return walk_forward(problem, method, query_tiles, listener);
  StepsAlone steps(listener);
  walk_forward(problem, method, query_tiles, steps);
}

void walk_backward_part(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                        Listener& listener) {
  if (tiles.begin == 0) return walk_flash2_backward(kernel, problem, tiling, tiles, listener);
  StepsAlone steps(listener);
  walk_flash2_backward(kernel, problem, tiling, tiles, steps);
}

void walk_backward(Algorithm algorithm, const Problem& problem, Tiling tiling, Listener& listener) {
  assert(has_backward(algorithm));
  if (algorithm == Algorithm::standard) return walk_standard_backward(problem, tiling, listener);
  const TileGrid grid(problem, tiling);
  using enum BackwardKernel;
  walk_flash2_backward(deltas, problem, tiling, grid.every_query_tile(), listener);
  walk_flash2_backward(gradients, problem, tiling, grid.every_key_tile(), listener);
  walk_flash2_backward(conversion, problem, tiling, grid.every_query_tile(), listener);
}

}  // namespace flashsim
