// What a GPU does in a second, of each thing that the time model asks for: copies, reads by the size of what
// is read again and again, exponentials, multiply-adds, shared memory, and the launch of a kernel.
//
//     nvcc -O3 -arch=native tests/bench/gpu_rates.cu -o gpu_rates && ./gpu_rates
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

namespace {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

constexpr int kThreads = 512;

__global__ void nothing() {}

__global__ void copy(const float4* from, float4* to, std::size_t n) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) to[i] = from[i];
}

/// Reads past the L1, so that what isn't in the L2 comes from memory.
__global__ void read(const float4* from, std::size_t n, int times, float* out) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (int time = 0; time < times; ++time) {
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
      const float4 v = __ldcg(from + i);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  if (sum == 1.2345F) *out = sum;
}

__global__ void exponentials(float* out, int times) {
  float x[4];
  for (int k = 0; k < 4; ++k) x[k] = 1e-3F * static_cast<float>(threadIdx.x) + 0.1F * static_cast<float>(k);
  for (int time = 0; time < times; ++time) {
    for (float& each : x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(each));
  }
  if (x[0] + x[1] + x[2] + x[3] == 1.2345F) *out = x[0];
}

__global__ void multiply_adds(float* out, int times) {
  float x[8];
  for (int k = 0; k < 8; ++k) x[k] = 1e-3F * static_cast<float>(threadIdx.x) + static_cast<float>(k);
  for (int time = 0; time < times; ++time) {
    for (float& each : x) each = fmaf(each, 1.0001F, 0.5F);
  }
  float sum = 0;
  for (const float each : x) sum += each;
  if (sum == 1.2345F) *out = sum;
}

__global__ void shared_reads(float* out, int times) {
  __shared__ float4 memory[1024];
  const int thread = static_cast<int>(threadIdx.x);
  const auto value = static_cast<float>(thread);
  memory[thread] = make_float4(value, value, value, value);
  __syncthreads();
  float sum = 0;
  for (int time = 0; time < times; ++time) {
    const float4 v = memory[(thread + time * 32) & 1023];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1.2345F) *out = sum;
}

/// Median of seven, in seconds, after two that don't count.
template <class Work>
double seconds(Work work) {
  cudaEvent_t start{};
  cudaEvent_t stop{};
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    check(cudaEventRecord(start), "record");
    work();
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(stop), "record");
    check(cudaEventSynchronize(stop), "kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, stop), "time");
    if (i >= 2) times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + 3, times.end());
  return 1e-3 * static_cast<double>(times[3]);
}

}  // namespace

int main() {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "device");
  const int sms = device.multiProcessorCount;
  std::printf("%s, %d SMs, L2 %d B\n", device.name, sms, device.l2CacheSize);
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  char* from = nullptr;
  char* to = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&from, kBytes), "memory");
  check(cudaMalloc(&to, kBytes), "memory");
  check(cudaMalloc(&out, sizeof(float)), "memory");
  check(cudaMemset(from, 1, kBytes), "fill");
  check(cudaMemset(to, 2, kBytes), "fill");
  const auto* source = reinterpret_cast<const float4*>(from);
  auto* target = reinterpret_cast<float4*>(to);

  std::printf("launch, alone        %6.2f us\n", 1e6 * seconds([] { nothing<<<1, 32>>>(); }));
  std::printf("launch, in a row     %6.2f us\n", 1e3 * seconds([&] {
                                                   for (int i = 0; i < 1000; ++i) nothing<<<sms, 128>>>();
                                                 }));
  constexpr double kMoved = 2.0 * kBytes;
  std::printf("copy, by a kernel    %6.3f TB/s read and written\n",
              kMoved / seconds([&] { copy<<<sms * 16, kThreads>>>(source, target, kBytes / 16); }) / 1e12);
  std::printf("copy, by the runtime %6.3f TB/s\n",
              kMoved / seconds([&] {
                check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice), "copy");
              }) / 1e12);
  for (const int megabytes : {2, 4, 8, 16, 24, 32, 40, 48, 56, 60, 64, 72, 80, 100, 128, 512}) {
    const std::size_t n = std::size_t(megabytes) * 1000000 / 16;
    const int times = std::max(3, 4000 / megabytes);
    const double time = seconds([&] { read<<<sms * 4, kThreads>>>(source, n, times, out); });
    std::printf("read %4d MB again    %6.3f TB/s\n", megabytes,
                16.0 * static_cast<double>(n) * times / time / 1e12);
  }
  constexpr int kTimes = 20000;
  const double lanes = 4.0 * sms * kThreads * kTimes;
  std::printf("exponentials         %6.3f T/s\n",
              4 * lanes / seconds([&] { exponentials<<<sms * 4, kThreads>>>(out, kTimes); }) / 1e12);
  std::printf("multiply-adds        %6.2f TFLOP/s\n",
              16 * lanes / seconds([&] { multiply_adds<<<sms * 4, kThreads>>>(out, kTimes); }) / 1e12);
  std::printf("shared memory        %6.2f TB/s\n", 16.0 * 2 * sms * 1024 * kTimes / seconds([&] {
                                                     shared_reads<<<sms * 2, 1024>>>(out, kTimes);
                                                   }) / 1e12);
  return 0;
}
