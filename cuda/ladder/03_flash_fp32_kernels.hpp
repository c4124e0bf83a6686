// The compiled kernels of 03: the right ones, and those that are broken on purpose, which lie in a file of
// their own because there are many.
#pragma once

#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"

namespace flashsim::flash_fp32 {

/// One kernel, ready to launch.
struct Choice {
  const void* function = nullptr;
  int rows = 0;  ///< of a query tile
  int threads = 0;
  int shared_bytes = 0;
};

/// For a head dimension up to 256; `counts`: the build that counts its own loads and stores.
Choice right_kernel(const Problem& problem, bool counts);

/// The same, broken as the switches say.
Choice broken_kernel(const Problem& problem, const Switches& switches);

}  // namespace flashsim::flash_fp32
