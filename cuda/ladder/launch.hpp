// What a launch needs beside its kernel: a grid that the hardware takes, and shared memory beyond 48 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/check.hpp"

namespace flashsim {

/// A grid of one dimension. Throws CudaError above the hardware's 2³¹ − 1 blocks.
inline unsigned grid_of(std::int64_t blocks) {
  if (blocks > INT32_MAX) {
    throw CudaError(cudaErrorInvalidConfiguration,
                    ("a grid of " + std::to_string(blocks) + " blocks").c_str());
  }
  return static_cast<unsigned>(blocks);
}

/// Lets the kernel `function` have that much dynamic shared memory: above 48 KiB it must be asked for.
inline void opt_in_to_shared(const void* function, std::size_t bytes) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (bytes <= kWithoutAsking) return;
  cuda_check(
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "cudaFuncSetAttribute");
}

/// Throws what the launch just made has to say.
inline void check_launch(const char* kernel) { cuda_check(cudaGetLastError(), kernel); }

}  // namespace flashsim
