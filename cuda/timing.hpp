// Time on the device, taken by events on a stream, and the median that stands for several runs.
#pragma once

#include <algorithm>
#include <cassert>
#include <vector>

#include <cuda_runtime.h>

#include "cuda/check.hpp"

namespace flashsim {

/// A pair of events of the current device. Throws CudaError.
class EventTimer {
 public:
  EventTimer() {
    cuda_check(cudaEventCreate(&start_), "cudaEventCreate");
    const cudaError_t second = cudaEventCreate(&stop_);
    if (second != cudaSuccess) (void)cudaEventDestroy(start_);
    cuda_check(second, "cudaEventCreate");
  }
  ~EventTimer() {
    (void)cudaEventDestroy(start_);
    (void)cudaEventDestroy(stop_);
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  /// Seconds that the device takes for what `work` puts on the stream. Waits until it is done.
  template <class Work>
  double seconds(cudaStream_t stream, Work&& work) {
    cuda_check(cudaEventRecord(start_, stream), "cudaEventRecord");
    work();
    cuda_check(cudaGetLastError(), "kernel launch");
    cuda_check(cudaEventRecord(stop_, stream), "cudaEventRecord");
    cuda_check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

/// The middle one, or the mean of the two in the middle. There must be at least one.
inline double median(std::vector<double> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace flashsim
