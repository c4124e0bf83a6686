// The kernels "deltas" and "conversion" of 06 for each type.
#include "cuda/ladder/06_flash_backward_kernels.hpp"
#include "cuda/ladder/06_flash_backward_rows.cuh"

namespace flashsim::flash_backward {

template <class T>
Plan<T> deltas_plan(const Problem& problem) {
  return {.name = "deltas",
          .kernel = problem.head_dim <= 64 ? deltas<T, 64> : deltas<T, 128>,
          .blocks = problem.batch * problem.heads * tiles_of(problem.seq, kTileRows),
          .threads = kRowThreads};
}

template <class T>
Plan<T> conversion_plan(const Problem& problem) {
  return {.name = "conversion",
          .kernel = problem.head_dim <= 64 ? conversion<T, 64> : conversion<T, 128>,
          .blocks = query_tiles(problem),
          .threads = kConversionThreads};
}

template Plan<__half> deltas_plan(const Problem&);
template Plan<__nv_bfloat16> deltas_plan(const Problem&);
template Plan<__half> conversion_plan(const Problem&);
template Plan<__nv_bfloat16> conversion_plan(const Problem&);

}  // namespace flashsim::flash_backward
