#include "cuda/rates/launch_rates.hpp"

#include <vector>

#include "cuda/rates/steady.hpp"

namespace flashsim {
namespace {

constexpr int kThreads = 128;
constexpr int kInRow = 1000;
/// Longer than the host takes to put a kernel and two events behind it.
constexpr long long kBusyNanoseconds = 300'000;

__global__ void nothing() {}

__global__ void wait(long long nanoseconds) {
  const auto now = [] {
    long long time = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  };
  const long long start = now();
  while (now() - start < nanoseconds) {
  }
}

}  // namespace

LaunchCosts measure_launches(int sms, cudaStream_t stream) {
  const auto one = [&] { nothing<<<sms, kThreads, 0, stream>>>(); };
  LaunchCosts costs;
  costs.alone = steady_seconds(stream, one);
  costs.in_row = steady_seconds(stream,
                                [&] {
                                  for (int i = 0; i < kInRow; ++i) one();
                                }) /
                 kInRow;
  EventTimer timer;
  std::vector<double> behind;
  for (int run = 0; run < 5 * kTimedRuns; ++run) {
    wait<<<1, 1, 0, stream>>>(kBusyNanoseconds);
    behind.push_back(timer.seconds(stream, one));
  }
  costs.queued = median(std::move(behind));
  return costs;
}

}  // namespace flashsim
