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

  /// A barrier that tells whether `mine` is true for any.
  __device__ bool any(bool mine) const {
    if constexpr (kThreads == 32) {
      const bool any = __any_sync(0xffffffffU, static_cast<int>(mine)) != 0;
      __syncwarp();
      return any;
    } else {
      int any;
      asm volatile(
          "{\n"
          ".reg .pred mine, any;\n"
          "setp.ne.s32 mine, %1, 0;\n"
          "bar.red.or.pred any, %2, %3, mine;\n"
          "selp.s32 %0, 1, 0, any;\n"
          "}"
          : "=r"(any)
          : "r"(static_cast<int>(mine)), "r"(number + 1), "n"(kThreads)
          : "memory");
      return any != 0;
    }
  }
};

}  // namespace flashsim
