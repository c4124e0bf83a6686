// Additions to float32 numbers in memory by many thread blocks at once. The L2 adds; nothing comes back.
// Which block is first is chance, and the last bits of the sum with it.
#pragma once

#include <nv/target>

namespace flashsim {

/// Adds to four neighbours, the first at a multiple of 16 bytes: in one instruction from sm_90 on.
__device__ inline void add_to_four(float* to, const float (&values)[4]) {
  NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90,
                    (asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values[0]),
                                  "f"(values[1]), "f"(values[2]), "f"(values[3])
                                  : "memory");),
                    (for (int x = 0; x < 4; ++x) {
                      asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to + x), "f"(values[x]) : "memory");
                    }))
}

}  // namespace flashsim
