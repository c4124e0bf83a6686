#include "cuda/harness/tensors.hpp"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/check.hpp"

namespace flashsim {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kBlocks = 1024;

template <class To, class From>
__global__ void convert(To* to, const From* from, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = static_cast<To>(static_cast<float>(from[i]));
  }
}

/// Calls `work` with the tensor's memory as an array of its type.
template <class Work>
void in_type(NumberType type, void* data, Work work) {
  switch (type) {
    case NumberType::fp16: return work(static_cast<__half*>(data));
    case NumberType::bf16: return work(static_cast<__nv_bfloat16*>(data));
    default: return work(static_cast<float*>(data));
  }
}

/// The host's floats pass through a buffer of this many, so that a tensor needs no second copy of itself.
constexpr std::int64_t kBuffered = std::int64_t{1} << 24;

struct Buffer {
  explicit Buffer(std::int64_t count) {
    cuda_check(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(float)), "cudaMalloc");
  }
  ~Buffer() { (void)cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data = nullptr;
};

}  // namespace

void DeviceTensor::upload(std::span<const float> from, cudaStream_t stream) {
  const Buffer buffer(std::min(count_, kBuffered));
  for (std::int64_t first = 0; first < count_; first += kBuffered) {
    const std::int64_t count = std::min(kBuffered, count_ - first);
    cuda_check(
        cudaMemcpyAsync(buffer.data, from.data() + first, static_cast<std::size_t>(count) * sizeof(float),
                        cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
    in_type(type_, data(), [&](auto* to) {
      convert<<<kBlocks, kThreads, 0, stream>>>(to + first, static_cast<const float*>(buffer.data), count);
    });
    cuda_check(cudaGetLastError(), "convert");
  }
  cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void DeviceTensor::download(std::span<float> to, cudaStream_t stream) const {
  const Buffer buffer(std::min(count_, kBuffered));
  for (std::int64_t first = 0; first < count_; first += kBuffered) {
    const std::int64_t count = std::min(kBuffered, count_ - first);
    in_type(type_, data(),
            [&](auto* from) { convert<<<kBlocks, kThreads, 0, stream>>>(buffer.data, from + first, count); });
    cuda_check(cudaGetLastError(), "convert");
    cuda_check(
        cudaMemcpyAsync(to.data() + first, buffer.data, static_cast<std::size_t>(count) * sizeof(float),
                        cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  }
  cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void DeviceTensor::poison(cudaStream_t stream) {
  constexpr int kAllBits = 0xFF;
  cuda_check(cudaMemsetAsync(data(), kAllBits, bytes(), stream), "cudaMemsetAsync");
}

}  // namespace flashsim
