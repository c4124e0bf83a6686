#include "tests/bench/fma_peak.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace flashsim::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Twelve independent sums: enough to cover the latency of two units at four cycles each, and with their
/// two factors they fit in sixteen registers. Returns the FLOPs done; `sum` keeps the compiler from dropping
/// them.
template <class T>
double multiply_add(std::int64_t rounds, T& sum) {
  const hn::ScalableTag<T> d;
  using Vector = hn::Vec<decltype(d)>;
  const Vector factor = hn::Set(d, static_cast<T>(0.999));
  const Vector term = hn::Set(d, sum);
  const auto start = [&](int n) { return hn::Set(d, static_cast<T>(n)); };  // Equal sums would become one.
  Vector a = start(1), b = start(2), c = start(3), e = start(4), f = start(5), g = start(6);
  Vector h = start(7), i = start(8), j = start(9), k = start(10), l = start(11), m = start(12);
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
    l = hn::MulAdd(l, factor, term);
    m = hn::MulAdd(m, factor, term);
  }
  a = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  h = hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m));
  sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, h)));
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

double multiply_add_f32(std::int64_t rounds, float& sum) { return multiply_add(rounds, sum); }
double multiply_add_f64(std::int64_t rounds, double& sum) { return multiply_add(rounds, sum); }
const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace flashsim::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace flashsim::bench {
namespace {

HWY_EXPORT(multiply_add_f32);
HWY_EXPORT(multiply_add_f64);
HWY_EXPORT(target_name);

double multiply_add(std::int64_t rounds, float& sum) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_f32)(rounds, sum);
}
double multiply_add(std::int64_t rounds, double& sum) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_f64)(rounds, sum);
}

struct Run {
  double flops = 0, seconds = 0;
};

/// All threads start together, and the last one to end stops the clock.
template <class T>
Run run_once(int threads, std::int64_t rounds) {
  std::atomic<double> flops = 0;
  std::barrier start(threads + 1);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      T sum = 1;
      start.arrive_and_wait();
      flops += multiply_add(rounds, sum);
      volatile T kept = sum;
      static_cast<void>(kept);
    });
  }
  start.arrive_and_wait();
  const auto began = std::chrono::steady_clock::now();
  for (std::thread& thread : running) thread.join();
  return {flops, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

}  // namespace

template <class T>
double fma_peak(int threads) {
  std::int64_t rounds = 1 << 16;
  Run run;
  while ((run = run_once<T>(threads, rounds)).seconds < 0.05) rounds *= 2;
  double best = run.flops / run.seconds;
  for (int i = 0; i < 4; ++i) {
    run = run_once<T>(threads, rounds);
    best = std::max(best, run.flops / run.seconds);
  }
  return best;
}

template double fma_peak<float>(int);
template double fma_peak<double>(int);

const char* fma_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace flashsim::bench
#endif  // HWY_ONCE
