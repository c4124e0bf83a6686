// The compiled kernels of 06, chosen for a problem: they lie in files of their own, because each takes long.
#pragma once

#include "core/problem/problem.hpp"
#include "cuda/ladder/06_flash_backward.cuh"
#include "cuda/ladder/launch.hpp"

namespace flashsim::flash_backward {

template <class T>
using Plan = LaunchPlan<Arguments<T>>;

/// Tiles of `size` that `rows` fill.
constexpr std::int64_t tiles_of(std::int64_t rows, std::int64_t size) { return (rows + size - 1) / size; }

/// Tiles of packed rows, of all key/value heads.
constexpr std::int64_t query_tiles(const Problem& problem) {
  const Problem packed = packed_heads(problem);
  return packed.batch * packed.heads * tiles_of(packed.seq, kTileRows);
}
/// Columns of a tile in shared memory and of one of dQ's sum.
constexpr std::int64_t padded_depth(const Problem& problem) { return problem.head_dim <= 64 ? 64 : 128; }

template <class T>
Plan<T> deltas_plan(const Problem& problem);
template <class T>
Plan<T> conversion_plan(const Problem& problem);
/// `sums`: it adds to dQ's sum, too. kCareful: what is hidden stays hidden, whatever it is.
template <class T, bool kCareful>
Plan<T> gradients_plan(const Problem& problem, bool sums);
template <class T, bool kCareful>
Plan<T> query_gradient_plan(const Problem& problem);

}  // namespace flashsim::flash_backward
