// Copies from HBM into shared memory that run beside the arithmetic (cp.async, sm_80 and later).
#pragma once

#include <cstdint>

namespace flashsim {

/// Starts copying kBytes, 16 or 4, from `from` to `to`, or writing as many zeros where `there` is false. 16
/// bytes pass by the L1, so that what an SM loads again crosses from the L2 again, as the account has it.
template <int kBytes>
__device__ inline void copy_async(void* to, const void* from, bool there) {
  static_assert(kBytes == 16 || kBytes == 4,
                "cp.async copies 4, 8 or 16 bytes, and two of them are used here");
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(from), "r"(bytes)
                 : "memory");
  }
}

/// What was started since the last call is one group.
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until all but the last kGroups groups of this thread have arrived. Other threads see them after a
/// barrier.
template <int kGroups>
__device__ inline void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace flashsim
