// The compiled kernels of 04: the right ones, and those that are broken on purpose, which lie in files of
// their own because there are many.
#pragma once

#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"
#include "cuda/ladder/04_flash_tensor.cuh"
#include "cuda/ladder/launch.hpp"

namespace flashsim::flash_tensor {

using Plan = LaunchPlan<Arguments>;

/// For a head dimension up to 256, in fp16 or bf16.
Plan right_kernel(const Problem& problem);

/// The same, broken as the switches say.
template <class T>
Plan broken_kernel(const Problem& problem, const Switches& switches);
extern template Plan broken_kernel<__half>(const Problem&, const Switches&);
extern template Plan broken_kernel<__nv_bfloat16>(const Problem&, const Switches&);

template <class T, class Tile, class Softmax>
Plan plan(const Problem& problem) {
  return {.name = "attention",
          .kernel = flash<T, Tile, Softmax>,
          .blocks = problem.batch * problem.heads * ((problem.seq + Tile::kRows - 1) / Tile::kRows),
          .threads = Tile::kThreads,
          .dynamic_shared = Tile::kSharedBytes};
}

// Two blocks of four warps fill an SM's registers: 255 a thread. A warp has 32 rows, so that what it loads of
// K and V serves two fragments; O takes d of its registers, S one for each key. So many keys as fit without a
// spill: 128 to d 64, 64 to d 128. At d 256 O leaves room for 16 rows. K and V have two places where two
// blocks fit an SM's shared memory so.
using Tile32 = Tile<32, 2, 4, 128, 2, 2>;
using Tile64 = Tile<64, 2, 4, 128, 2, 2>;
using Tile96 = Tile<96, 2, 4, 64, 2, 2>;
using Tile128 = Tile<128, 2, 4, 64, 2, 2>;
using Tile256 = Tile<256, 1, 4, 64, 2, 1>;

}  // namespace flashsim::flash_tensor
