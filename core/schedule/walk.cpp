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
  void block() override { next_.block(); }

 private:
  Listener& next_;
};

void walk_forward(const Problem& problem, const Method& method, Range part, Listener& listener) {
  switch (method.algorithm) {
    case Algorithm::standard: return walk_standard(problem, method, part, listener);
    case Algorithm::eager: return walk_eager(problem, method, part, listener);
    case Algorithm::three_pass:
    case Algorithm::three_pass_stored: return walk_three_pass(problem, method, part, listener);
    case Algorithm::flash1: return walk_flash1(problem, method, part, listener);
    case Algorithm::flash2: return walk_flash2(problem, method, part, listener);
    case Algorithm::memory_efficient: return walk_memory_efficient(problem, method, part, listener);
    case Algorithm::split_kv: return walk_split_kv(problem, method, part, listener);
    case Algorithm::block_sparse: return walk_block_sparse(problem, method, part, listener);
  }
}

}  // namespace

Range query_tiles_of(const Problem& problem, const Method& method) {
  const Problem walked = walked_problem(problem, method);
  return TileGrid(walked, method.tiling).every_query_tile();
}

void walk(const Problem& problem, const Method& method, Listener& listener) {
  if (method.pass != Pass::backward) {
    walk_forward(problem, method, query_tiles_of(problem, method), listener);
  }
  if (method.pass != Pass::forward) walk_backward(problem, method, listener);
}

void walk_part(const Problem& problem, const Method& method, Range query_tiles, Listener& listener) {
  if (query_tiles.begin == 0) return walk_forward(problem, method, query_tiles, listener);
  StepsAlone steps(listener);
  walk_forward(problem, method, query_tiles, steps);
}

void walk_blocks(const Problem& problem, const Method& method, Range query_tiles, Listener& listener) {
  walk_forward(problem, method, query_tiles, listener);
}

void walk_backward_part(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                        Listener& listener) {
  if (tiles.begin == 0) return walk_flash2_backward(kernel, problem, tiling, tiles, listener);
  StepsAlone steps(listener);
  walk_flash2_backward(kernel, problem, tiling, tiles, steps);
}

void walk_backward(const Problem& problem, const Method& method, Listener& listener) {
  assert(has_backward(method.algorithm));
  switch (method.algorithm) {
    case Algorithm::standard: return walk_standard_backward(problem, method, listener);
    case Algorithm::eager: return walk_eager_backward(problem, method, listener);
    case Algorithm::flash1: return walk_flash1_backward(problem, method, listener);
    case Algorithm::flash2: return walk_flash2_backward(problem, method, listener);
    default: break;  // the others have none
  }
}

}  // namespace flashsim
