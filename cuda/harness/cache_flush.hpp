// An L2 that holds nothing of what comes next, and nothing that still waits to be written.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace flashsim {

class CacheFlush {
 public:
  /// For an L2 of so many bytes. Takes device memory of four times that. Throws CudaError.
  explicit CacheFlush(std::size_t l2_bytes);
  ~CacheFlush();
  CacheFlush(const CacheFlush&) = delete;
  CacheFlush& operator=(const CacheFlush&) = delete;

  /// Reads other memory until the L2 is full of it. What waited to be written has then gone to HBM.
  void operator()(cudaStream_t stream) const;

 private:
  float4* memory_ = nullptr;
  std::size_t chunks_ = 0;
};

}  // namespace flashsim
