#include "cuda/rates/clock_sample.hpp"

#include "cuda/check.hpp"

namespace flashsim {
namespace {

constexpr long long kNanoseconds = 20'000'000;

__device__ long long nanoseconds_now() {
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void watch(double* hz) {
  const long long start = nanoseconds_now();
  const long long first = clock64();
  while (nanoseconds_now() - start < kNanoseconds) __nanosleep(1000);
  const auto cycles = static_cast<double>(clock64() - first);
  *hz = 1e9 * cycles / static_cast<double>(nanoseconds_now() - start);
}

/// A stream that waits for no other.
class OwnStream {
 public:
  OwnStream() {
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~OwnStream() { (void)cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace

double clock_during(MemoryPool& pool, cudaStream_t stream, const std::function<void()>& work) {
  const OwnStream own;
  const PoolArray<double> hz(pool, 1, own.get());
  watch<<<1, 1, 0, own.get()>>>(hz.data());
  cuda_check(cudaGetLastError(), "watch");
  cudaError_t watching = cudaErrorNotReady;
  while (watching == cudaErrorNotReady) {
    work();
    cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    watching = cudaStreamQuery(own.get());
  }
  cuda_check(watching, "watch");
  double held = 0;
  cuda_check(cudaMemcpyAsync(&held, hz.data(), sizeof(double), cudaMemcpyDeviceToHost, own.get()),
             "cudaMemcpyAsync");
  cuda_check(cudaStreamSynchronize(own.get()), "cudaStreamSynchronize");
  return held;
}

}  // namespace flashsim
