// The kernel "query_gradient" of 06 for each depth and type.
#include "cuda/ladder/06_flash_backward_kernels.hpp"
#include "cuda/ladder/06_flash_backward_query.cuh"

namespace flashsim::flash_backward {
namespace {

template <class T, class Tile>
Plan<T> plan_on(const Problem& problem) {
  return {.name = "query_gradient",
          .kernel = query_gradient<T, Tile>,
          .blocks = query_tiles(problem),
          .threads = Tile::kThreads,
          .dynamic_shared = Tile::kSharedBytes};
}

}  // namespace

template <class T>
Plan<T> query_gradient_plan(const Problem& problem) {
  return problem.head_dim <= 64 ? plan_on<T, QueryTile<64, kTileRows, 128, 64>>(problem)
                                : plan_on<T, QueryTile<128, kTileRows, 128, 64>>(problem);
}

template Plan<__half> query_gradient_plan(const Problem&);
template Plan<__nv_bfloat16> query_gradient_plan(const Problem&);

}  // namespace flashsim::flash_backward
