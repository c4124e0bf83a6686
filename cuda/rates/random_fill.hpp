// Random numbers made on the device. What is measured works on these and never on zeros, on which a chip
// draws less power and so runs faster than on data.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "core/base/number_types.hpp"

namespace flashsim {

/// Fills `count` elements of fp16, bf16, fp32 or fp64 uniformly from (−1, 1); the same seed gives the same
/// numbers. Returns before it is done. Throws CudaError, for fp8 too.
void fill_random(void* memory, NumberType type, std::size_t count, std::uint64_t seed, cudaStream_t stream);

}  // namespace flashsim
