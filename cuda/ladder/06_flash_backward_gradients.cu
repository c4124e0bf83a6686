// The kernels "gradients" and "key_value_gradients" of 06 for each depth and type.
#include "cuda/ladder/06_flash_backward_gradients.cuh"
#include "cuda/ladder/06_flash_backward_kernels.hpp"

namespace flashsim::flash_backward {
namespace {

template <class T, class Tile>
Plan<T> plan_on(const Problem& problem, bool sums) {
  return {.name = sums ? "gradients" : "key_value_gradients",
          .kernel = sums ? gradients<T, Tile, true> : gradients<T, Tile, false>,
          .blocks = problem.batch * problem.kv_heads * tiles_of(problem.kv_seq, Tile::kKeys),
          .threads = Tile::kThreads,
          .dynamic_shared = Tile::kSharedBytes};
}

}  // namespace

template <class T>
Plan<T> gradients_plan(const Problem& problem, bool sums) {
  return problem.head_dim <= 64 ? plan_on<T, GradientTile<64, kTileRows, 128, 4, 32>>(problem, sums)
                                : plan_on<T, GradientTile<128, kTileRows, 128, 8, 64>>(problem, sums);
}

template Plan<__half> gradients_plan(const Problem&, bool);
template Plan<__nv_bfloat16> gradients_plan(const Problem&, bool);

}  // namespace flashsim::flash_backward
