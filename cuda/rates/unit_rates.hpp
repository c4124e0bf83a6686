// What the units of an SM do, each by a kernel that does nothing else: multiply-adds in registers,
// exponentials, reads of shared memory, and products of fragments.
#pragma once

#include <cuda_runtime.h>

#include "cuda/memory_pool.hpp"

namespace flashsim {

/// One unit, with all SMs at work.
struct UnitRate {
  double per_second = 0;        ///< on all SMs, by events
  double per_sm_per_clock = 0;  ///< by the SM's own cycles
  double clock_hz = 0;          ///< cycles a second that the SMs held
};

enum class Unit {
  fp32,            ///< FLOPs, two for a fused multiply-add
  fp64,            ///< likewise
  exponentials,    ///< ex2.approx, which every exponential of a float32 kernel becomes
  shared_memory,   ///< bytes read
  fragments_fp16,  ///< FLOPs of products that warps make of fragments in registers (mma.sync)
  fragments_bf16,  ///< likewise
};

/// Throws CudaError.
UnitRate measure_unit(Unit unit, MemoryPool& pool, int sms, cudaStream_t stream);

}  // namespace flashsim
