#include "cuda/rates/random_fill.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/check.hpp"

namespace flashsim {
namespace {

/// SplitMix64 of an index: neighbours share nothing.
__device__ std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class T>
__global__ void fill(T* memory, std::size_t count, std::uint64_t seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    // Of 2^23 numbers, half way between two multiples of 2^-22: none of them is 0.
    const auto bits = static_cast<float>(mixed(seed ^ mixed(i)) >> 41);
    memory[i] = static_cast<T>((bits + 0.5F) * 0x1p-22F - 1.0F);
  }
}

template <class T>
void launch(void* memory, std::size_t count, std::uint64_t seed, cudaStream_t stream) {
  fill<<<1024, 256, 0, stream>>>(static_cast<T*>(memory), count, seed);
  cuda_check(cudaGetLastError(), "fill");
}

}  // namespace

void fill_random(void* memory, NumberType type, std::size_t count, std::uint64_t seed, cudaStream_t stream) {
  switch (type) {
    case NumberType::fp16: return launch<__half>(memory, count, seed, stream);
    case NumberType::bf16: return launch<__nv_bfloat16>(memory, count, seed, stream);
    case NumberType::fp32: return launch<float>(memory, count, seed, stream);
    case NumberType::fp64: return launch<double>(memory, count, seed, stream);
    case NumberType::fp8: break;
  }
  throw CudaError(cudaErrorInvalidValue, "fill_random");
}

}  // namespace flashsim
