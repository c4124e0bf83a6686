#include "cuda/rates/memory_rates.hpp"

#include <algorithm>

#include "cuda/rates/random_fill.hpp"
#include "cuda/rates/steady.hpp"

namespace flashsim {
namespace {

constexpr int kThreads = 512;
constexpr std::size_t kMostCopied = std::size_t{2} << 30;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

__global__ void copy(const float4* from, float4* to, std::size_t n) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) to[i] = from[i];
}

/// A load that may stay in the L2 and never in the L1.
__global__ void read_again(const float4* from, std::size_t n, int times, float* out) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (int time = 0; time < times; ++time) {
#pragma unroll 4
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
      const float4 v = __ldcg(from + i);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  if (sum == 1.2345F) *out = sum;  // Else nothing needs the loads, and the compiler drops them.
}

}  // namespace

CopyRates measure_copies(MemoryPool& pool, int sms, cudaStream_t stream) {
  std::size_t free = 0;
  std::size_t all = 0;
  cuda_check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  const std::size_t bytes = std::clamp(free * 2 / 5 / kMebibyte * kMebibyte, kMebibyte, kMostCopied);
  const std::size_t n = bytes / sizeof(float4);
  const PoolArray<float4> from(pool, n, stream);
  const PoolArray<float4> to(pool, n, stream);
  fill_random(from.data(), NumberType::fp32, bytes / sizeof(float), 1, stream);
  const double moved = 2.0 * static_cast<double>(bytes);
  const double kernel =
      steady_seconds(stream, [&] { copy<<<sms * 16, kThreads, 0, stream>>>(from.data(), to.data(), n); });
  const double runtime = steady_seconds(stream, [&] {
    cuda_check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream),
               "cudaMemcpyAsync");
  });
  return {.bytes = bytes, .by_kernel = moved / kernel, .by_runtime = moved / runtime};
}

double measure_l2_reads(MemoryPool& pool, int sms, std::size_t bytes, cudaStream_t stream) {
  constexpr double kSeconds = 5e-3;
  constexpr int kFirstTimes = 20;
  const std::size_t n = bytes / sizeof(float4);
  const PoolArray<float4> from(pool, n, stream);
  const PoolArray<float> out(pool, 1, stream);
  fill_random(from.data(), NumberType::fp32, n * 4, 2, stream);
  const auto read = [&](int times) {
    read_again<<<sms * 4, kThreads, 0, stream>>>(from.data(), n, times, out.data());
  };
  EventTimer timer;
  (void)timer.seconds(stream, [&] { read(kFirstTimes); });
  const int times = times_for(kSeconds, kFirstTimes, timer.seconds(stream, [&] { read(kFirstTimes); }));
  const double seconds = steady_seconds(stream, [&] { read(times); });
  return static_cast<double>(n * sizeof(float4)) * times / seconds;
}

}  // namespace flashsim
