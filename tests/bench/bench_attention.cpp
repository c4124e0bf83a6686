// The rate of attention on this machine, and what share it is of the rate of bare multiply-adds.
//
//   bench_attention [--full] [--benchmark_filter=REGEX …]
//
// --full adds 8192 tokens to 2048. Rates are by the count that libraries are compared with (workload.hpp).
// A name like forward/flash2/f32/d:64/N:2048/causal/threads:1 says what was run; there are always four heads.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/problem/algorithm.hpp"
#include "tests/bench/fma_peak.hpp"
#include "tests/bench/workload.hpp"

namespace flashsim::bench {
namespace {

struct Case {
  bool backward = false;
  Algorithm algorithm = Algorithm::flash2;
  Shape shape;
  bool causal = false;
  int threads = 1;
};

template <class T>
constexpr const char* type_name() {
  return sizeof(T) == 8 ? "f64" : "f32";
}

template <class T>
std::string name_of(const Case& c) {
  return fmt::format("{}/{}/{}/d:{}/N:{}/{}/threads:{}", c.backward ? "backward" : "forward",
                     facts_of(c.algorithm).name, type_name<T>(), c.shape.head_dim, c.shape.seq,
                     c.causal ? "causal" : "full", c.threads);
}

/// Measured when first asked for.
template <class T>
double peak(int threads) {
  static std::map<int, double> measured;
  const auto found = measured.find(threads);
  return found != measured.end() ? found->second : measured[threads] = fma_peak<T>(threads);
}

/// Those of the last shape asked for: the library enters a benchmark several times.
template <class T>
const Tensors<T>& tensors_of(const Shape& shape) {
  static std::unique_ptr<const Tensors<T>> kept;
  static Shape kept_for;
  if (!kept || kept_for != shape) {
    kept.reset();
    kept = std::make_unique<const Tensors<T>>(drawn_tensors<T>(shape));
    kept_for = shape;
  }
  return *kept;
}

/// One call to warm up, then calls that are timed one by one.
template <class Call>
void run(benchmark::State& state, double flops, double peak_rate, const Call& call) {
  seconds_of(call);
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double taken = seconds_of(call);
    state.SetIterationTime(taken);
    seconds += taken;
  }
  const double rate = flops * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP/s"] = 1e-9 * rate;
  state.counters["% of peak"] = 100 * rate / peak_rate;
}

template <class T>
void run_case(benchmark::State& state, const Case& c) {
  const Problem problem = problem_of<T>(c.shape, c.causal);
  const Tensors<T>& tensors = tensors_of<T>(c.shape);
  const double flops = counted_flops(problem, c.backward);
  const Execution execution{.threads = c.threads};
  const auto forward = [&] {
    return attend<T>(c.algorithm, problem, Tiling{}, Switches{}, tensors.inputs, execution);
  };
  if (!c.backward) return run(state, flops, peak<T>(c.threads), forward);
  const Outputs<T> outputs = forward();
  run(state, flops, peak<T>(c.threads), [&] {
    return attend_backward<T>(c.algorithm, problem, Tiling{}, Switches{}, tensors.inputs, outputs,
                              tensors.d_o, execution);
  });
}

template <class T>
void add(const Case& c) {
  benchmark::RegisterBenchmark(name_of<T>(c).c_str(), [c](benchmark::State& state) { run_case<T>(state, c); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

/// Its time is that of 10⁹ operations.
template <class T>
void add_peak(int threads) {
  const std::string name =
      fmt::format("multiply-add/{}/{}/threads:{}", fma_target(), type_name<T>(), threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [threads](benchmark::State& state) {
                                 for ([[maybe_unused]] auto _ : state)
                                   state.SetIterationTime(1e9 / peak<T>(threads));
                                 state.counters["GFLOP/s"] = 1e-9 * peak<T>(threads);
                               })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

template <class T>
void add_all(int threads, bool full) {
  add_peak<T>(threads);
  for (const bool backward : {false, true}) {
    for (const std::int64_t seq :
         full ? std::vector<std::int64_t>{2048, 8192} : std::vector<std::int64_t>{2048}) {
      for (const std::int64_t head_dim : {64, 128}) {
        for (const bool causal : {false, true}) {
          add<T>({.backward = backward,
                  .shape = {.seq = seq, .head_dim = head_dim},
                  .causal = causal,
                  .threads = threads});
        }
      }
    }
  }
  for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::standard}) {
    add<T>({.algorithm = algorithm, .shape = {.seq = 1024}, .threads = threads});
  }
}

}  // namespace
}  // namespace flashsim::bench

int main(int argc, char** argv) {
  const auto is_full = [](const char* argument) { return std::strcmp(argument, "--full") == 0; };
  char** const end = std::remove_if(argv + 1, argv + argc, is_full);
  const bool full = end != argv + argc;
  argc = static_cast<int>(end - argv);

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const int all = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const int threads : std::set{1, all}) {
    flashsim::bench::add_all<float>(threads, full);
    flashsim::bench::add_all<double>(threads, full);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
