// A kernel with everything that its launch needs, chosen before it is launched: so that what is launched and
// what is asked of its resources are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "cuda/check.hpp"

namespace flashsim {

/// A kernel whose parameters are `Parameters`, as chosen for a problem.
template <class... Parameters>
struct LaunchPlan {
  const char* name = "";  ///< as the account calls it
  void (*kernel)(Parameters...) = nullptr;
  std::int64_t blocks = 0;
  int threads = 0;
  std::size_t dynamic_shared = 0;  ///< bytes
};

/// A block of the kernel needs more shared memory than the GPU lets one have.
class BlockTooLarge : public std::runtime_error {
 public:
  BlockTooLarge(const char* kernel, std::size_t needed, std::size_t there)
      : std::runtime_error(std::string("a block of kernel ") + kernel + " needs " + std::to_string(needed) +
                           " B of shared memory, and this GPU lets it have " + std::to_string(there) + " B") {
  }
};

/// Lets the kernel `function`, called `name`, have that much dynamic shared memory: above 48 KiB it must be
/// asked for. Throws CudaError and BlockTooLarge.
inline void opt_in_to_shared(const char* name, const void* function, std::size_t bytes) {
  constexpr std::size_t kWithoutAsking = std::size_t{48} * 1024;
  if (bytes <= kWithoutAsking) return;
  int device = 0;
  int most = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  if (bytes > static_cast<std::size_t>(most))
    throw BlockTooLarge(name, bytes, static_cast<std::size_t>(most));
  cuda_check(
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "cudaFuncSetAttribute");
}

/// Launches, and returns before the kernel ends. Throws CudaError, also for more blocks than the 2³¹ − 1 of a
/// grid.
template <class... Parameters>
void launch(const LaunchPlan<Parameters...>& plan, cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  if (plan.blocks > INT32_MAX) {
    throw CudaError(
        cudaErrorInvalidConfiguration,
        (std::string(plan.name) + ": a grid of " + std::to_string(plan.blocks) + " blocks").c_str());
  }
  opt_in_to_shared(plan.name, reinterpret_cast<const void*>(plan.kernel), plan.dynamic_shared);
  void* pointers[] = {&arguments...};
  cuda_check(
      cudaLaunchKernel(reinterpret_cast<const void*>(plan.kernel), dim3(static_cast<unsigned>(plan.blocks)),
                       dim3(static_cast<unsigned>(plan.threads)), pointers, plan.dynamic_shared, stream),
      plan.name);
}

}  // namespace flashsim
