// A device that the harness works on: a stream of its own, and the memory that tensors come from.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "core/base/units.hpp"
#include "cuda/memory_pool.hpp"

namespace flashsim {

class DeviceContext {
 public:
  /// Makes a context on `device` where there is none. Throws CudaError.
  explicit DeviceContext(int device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] std::size_t l2_bytes() const { return l2_bytes_; }
  /// Memory for the inputs.
  MemoryPool& inputs() { return inputs_; }
  /// Memory for what a run makes: its peak is the run's.
  MemoryPool& pool() { return pool_; }
  /// Until the stream is empty. Throws CudaError.
  void wait() const;
  /// What is free for tensors. Throws CudaError.
  [[nodiscard]] static Bytes room();

 private:
  int device_;
  MemoryPool inputs_;
  MemoryPool pool_;
  cudaStream_t stream_ = nullptr;
  std::size_t l2_bytes_ = 0;
};

}  // namespace flashsim
