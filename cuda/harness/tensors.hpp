// Tensors on the device in the storage type, which come from float32 on the host and go back there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime.h>

#include "core/base/number_types.hpp"
#include "cuda/memory_pool.hpp"

namespace flashsim {

/// `count` elements of `type` (fp16, bf16 or fp32), from a pool.
class DeviceTensor {
 public:
  DeviceTensor(MemoryPool& pool, NumberType type, std::int64_t count, cudaStream_t stream)
      : type_(type), count_(count), memory_(pool, static_cast<std::size_t>(count * size_of(type)), stream) {}

  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(count_ * size_of(type_)); }

  /// Fills it from the host, each element rounded to the type. Waits. Throws CudaError.
  void upload(std::span<const float> from, cudaStream_t stream);
  /// Brings it to the host. Waits. Throws CudaError.
  void download(std::span<float> to, cudaStream_t stream) const;
  /// Every bit set, which is NaN in each type: what nobody writes will show.
  void poison(cudaStream_t stream);

 private:
  NumberType type_;
  std::int64_t count_;
  PoolArray<std::byte> memory_;
};

}  // namespace flashsim
