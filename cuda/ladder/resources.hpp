// What the compiler and the driver say of a CUDA kernel, so that a measurement can say what it ran.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem/device.hpp"
#include "cuda/ladder/launch.hpp"

namespace flashsim {

/// Of the kernel `function`, a __global__ function, as it is launched: `dynamic_shared` bytes on top of its
/// static ones. `name` is the account's for it. Opts in to that much shared memory, as a launch has to.
/// Throws CudaError.
KernelResources resources_of(const char* name, const void* function, int threads, std::size_t dynamic_shared,
                             std::int64_t blocks);

template <class... Parameters>
KernelResources resources_of(const LaunchPlan<Parameters...>& plan) {
  return resources_of(plan.name, reinterpret_cast<const void*>(plan.kernel), plan.threads,
                      plan.dynamic_shared, plan.blocks);
}

}  // namespace flashsim
