// The clock that the SMs hold while something else works on them: one warp watches their cycles go by.
#pragma once

#include <functional>

#include <cuda_runtime.h>

#include "cuda/memory_pool.hpp"

namespace flashsim {

/// Cycles a second during 20 ms of `work`, which puts a little on `stream` (not one that waits for others)
/// and is called until the time is over. Waits for all of it. Throws CudaError.
double clock_during(MemoryPool& pool, cudaStream_t stream, const std::function<void()>& work);

}  // namespace flashsim
