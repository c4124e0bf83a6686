// The compiled kernels of 03: the right ones, and those that are broken on purpose, which lie in a file of
// their own because there are many.
#pragma once

#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"
#include "cuda/ladder/03_flash_fp32.cuh"
#include "cuda/ladder/launch.hpp"

namespace flashsim::flash_fp32 {

using Plan = LaunchPlan<Arguments>;

/// For a head dimension up to 256; `counts`: the build that counts its own loads and stores.
Plan right_kernel(const Problem& problem, bool counts);

/// The same, broken as the switches say.
Plan broken_kernel(const Problem& problem, const Switches& switches);

template <class T>
std::int64_t query_tiles(const Problem& problem) {
  return (problem.seq + T::kRows - 1) / T::kRows;
}

template <class T, class Softmax, bool kCounts>
Plan plan(const Problem& problem) {
  return {.name = "attention",
          .kernel = flash<T, Softmax, kCounts>,
          .blocks = problem.batch * problem.heads * query_tiles<T>(problem),
          .threads = T::kThreads,
          .dynamic_shared = T::kSharedBytes};
}

}  // namespace flashsim::flash_fp32
