// Bytes a second: from HBM to HBM, and out of the L2.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "cuda/memory_pool.hpp"

namespace flashsim {

struct CopyRates {
  std::size_t bytes = 0;  ///< of the source, as many of the target
  double by_kernel = 0;   ///< bytes read and written a second
  double by_runtime = 0;  ///< cudaMemcpyAsync, likewise
};

/// Copies 2 GiB, or what fits, from one place of the device's memory to another. Throws CudaError.
CopyRates measure_copies(MemoryPool& pool, int sms, cudaStream_t stream);

/// Bytes a second that all SMs together read from `bytes` of memory, again and again and past the L1: those
/// of the L2 where `bytes` are few enough to stay there. Throws CudaError.
double measure_l2_reads(MemoryPool& pool, int sms, std::size_t bytes, cudaStream_t stream);

}  // namespace flashsim
