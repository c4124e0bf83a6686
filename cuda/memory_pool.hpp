// Device memory that knows the most that was ever taken of it at once: a CUDA memory pool of our own, whose
// high-water mark the driver keeps.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace flashsim {

class MemoryPool {
 public:
  /// A pool on `device` that keeps what is given back. Throws CudaError.
  explicit MemoryPool(int device);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// `bytes` on `stream`, aligned to 256. Throws CudaError where there is no room.
  void* take(std::size_t bytes, cudaStream_t stream);
  void give_back(void* memory, cudaStream_t stream);

  /// The most that was taken at once since the last call of start_peak(), above what was taken then.
  [[nodiscard]] std::size_t peak() const;
  void start_peak();

 private:
  cudaMemPool_t pool_ = nullptr;
  std::size_t base_ = 0;
};

/// Memory of a pool, given back when it goes.
template <class T>
class PoolArray {
 public:
  PoolArray(MemoryPool& pool, std::size_t count, cudaStream_t stream)
      : pool_(pool), stream_(stream), data_(static_cast<T*>(pool.take(count * sizeof(T), stream))) {}
  ~PoolArray() { pool_.give_back(data_, stream_); }
  PoolArray(const PoolArray&) = delete;
  PoolArray& operator=(const PoolArray&) = delete;
  [[nodiscard]] T* data() const { return data_; }

 private:
  MemoryPool& pool_;
  cudaStream_t stream_;
  T* data_;
};

}  // namespace flashsim
