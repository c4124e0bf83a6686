// Warps of a block that work together and wait for no other.
#pragma once

#include <cstdint>

namespace flashsim {

/// One of the groups of kThreads neighbouring threads that a block is made of: 32, or whole warps up to all.
template <int kThreads>
struct ThreadGroup {
  static_assert(kThreads % 32 == 0, "groups are made of warps");
  int number;  ///< among the block's, up to 14: the hardware has sixteen barriers, one of them the block's

  __device__ static ThreadGroup of_this_thread() {
    return {.number = static_cast<int>(threadIdx.x) / kThreads};
  }
  /// Of this thread in its group.
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kThreads; }

  /// All have come here, and what they wrote before all see after.
  __device__ void barrier() const {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(number + 1), "n"(kThreads) : "memory");
    }
  }
};

}  // namespace flashsim
