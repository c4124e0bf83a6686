// How a rate is timed: again and again until the clocks have settled, and then the median of a few runs.
#pragma once

#include <vector>

#include "cuda/timing.hpp"

namespace flashsim {

inline constexpr double kSettlingSeconds = 0.1;
inline constexpr int kTimedRuns = 9;

/// Median seconds of a run of `work`, which puts something on the stream. Throws CudaError.
template <class Work>
double steady_seconds(cudaStream_t stream, Work&& work) {
  EventTimer timer;
  // The first run loads the kernel, and is no measure of how long the others take.
  double spent = timer.seconds(stream, work);
  do {
    spent += timer.seconds(stream, work);
  } while (spent < kSettlingSeconds);
  std::vector<double> runs;
  for (int run = 0; run < kTimedRuns; ++run) runs.push_back(timer.seconds(stream, work));
  return median(std::move(runs));
}

/// How often something is to be repeated within a kernel so that one run takes `seconds`, when `times`
/// repeats took `taken`.
inline int times_for(double seconds, int times, double taken) {
  constexpr double kMost = 1 << 28;
  return static_cast<int>(std::clamp(seconds / taken * times, 1.0, kMost));
}

}  // namespace flashsim
