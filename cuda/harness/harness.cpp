#include "cuda/harness/harness.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "cuda/check.hpp"
#include "cuda/counters/counters.hpp"
#include "cuda/driver_facts.hpp"
#include "cuda/harness/cache_flush.hpp"
#include "cuda/harness/device_context.hpp"
#include "cuda/harness/memory_need.hpp"
#include "cuda/harness/tensor_sets.hpp"
#include "cuda/ladder/ladder.hpp"
#include "cuda/timing.hpp"

namespace flashsim {
namespace {

/// Runs that are made and not timed.
constexpr int kWarmUps = 2;
/// Copies of the inputs are made until they are twice the L2, or so many.
constexpr std::int64_t kMostInputSets = 8;

Bytes workspace_of(const DeviceTask& task) {
  const auto of = rung_of(task.kernel).workspace;
  return of == nullptr ? Bytes() : Bytes(static_cast<std::int64_t>(of(task)));
}

void check_fits(const DeviceTask& task) {
  const Bytes need = device_inputs(task) + device_outputs(task) + workspace_of(task);
  if (auto error = check_room(task, need, DeviceContext::room())) throw Refusal{*error};
}

/// Copies of the inputs that together are more than the L2 holds twice, as far as there is room.
std::vector<std::unique_ptr<InputSet>> input_sets(DeviceContext& place, const DeviceTask& task,
                                                  const DeviceInputs& inputs, CacheState cache) {
  std::vector<std::unique_ptr<InputSet>> sets;
  sets.push_back(std::make_unique<InputSet>(place, task, inputs));
  if (cache == CacheState::warm) return sets;
  const std::int64_t one = device_inputs(task).value();
  const auto wanted =
      std::min<std::int64_t>(kMostInputSets, 2 * static_cast<std::int64_t>(place.l2_bytes()) / one + 1);
  const Bytes rest = device_outputs(task) + workspace_of(task) + Bytes(one);
  while (static_cast<std::int64_t>(sets.size()) < wanted && rest < DeviceContext::room()) {
    sets.push_back(std::make_unique<InputSet>(place, task, inputs));
  }
  return sets;
}

/// What a kernel counted of itself.
std::vector<CounterReading> count_itself(DeviceContext& place, const DeviceTask& task, const InputSet& in,
                                         const OutputSet& out) {
  const PoolArray<OwnTraffic> traffic(place.inputs(), 1, place.stream());
  cuda_check(cudaMemsetAsync(traffic.data(), 0, sizeof(OwnTraffic), place.stream()), "cudaMemsetAsync");
  launch(place, task, in, out, traffic.data());
  OwnTraffic counted;
  cuda_check(
      cudaMemcpyAsync(&counted, traffic.data(), sizeof counted, cudaMemcpyDeviceToHost, place.stream()),
      "cudaMemcpyAsync");
  place.wait();
  return {
      {.what = "sm_read_bytes", .metric = "its own loads", .value = static_cast<std::int64_t>(counted.read)},
      {.what = "sm_written_bytes",
       .metric = "its own stores",
       .value = static_cast<std::int64_t>(counted.written)}};
}

/// Counts bytes as `how` says, by the best source that there is.
void count(DeviceContext& place, const DeviceTask& task, const InputSet& in, const OutputSet& out,
           const CacheFlush& flush, const MeasureHow& how, DeviceMeasurement& measured) {
  if (how.counters == CounterSource::automatic || how.counters == CounterSource::gpu) {
    NoCounters none;
    try {
      if (const auto counters = open_counters(place.device(), none)) {
        const auto prepare = [&] {
          how.cache == CacheState::cold ? flush(place.stream()) : launch(place, task, in, out);
          place.wait();
        };
        measured.counters = counters->count(prepare, [&] { launch(place, task, in, out); });
        measured.bytes = ByteSource::measured;
        return;
      }
    } catch (const NoCounters& refused) {
      none = refused;
    }
    measured.no_counters = none.why;
    measured.remedy = none.remedy;
  } else {
    measured.no_counters = "the GPU's counters weren't asked for";
  }
  if (how.counters == CounterSource::none || how.counters == CounterSource::gpu) return;
  if (!facts_of(task.kernel).counts_itself) return;
  measured.counters = count_itself(place, task, in, out);
  measured.bytes = ByteSource::instrumented;
}

}  // namespace

DeviceOutputs execute_on(int device, const DeviceTask& task, const DeviceInputs& inputs) {
  DeviceContext place(device);
  check_fits(task);
  const InputSet in(place, task, inputs);
  OutputSet out(place, task);
  out.poison(place.stream());
  EventTimer timer;
  DeviceOutputs outputs;
  outputs.seconds = {timer.seconds(place.stream(), [&] { launch(place, task, in, out); })};
  download(place, task, in, out, outputs);
  outputs.kernels = rung_of(task.kernel).resources(task);
  return outputs;
}

DeviceMeasurement measure_on(int device, const DeviceTask& task, const DeviceInputs& inputs,
                             const MeasureHow& how, const DeviceProgress& progress) {
  const auto told = [&](std::string_view phase, double done) {
    if (progress) progress(phase, done);
  };
  DeviceContext place(device);
  check_fits(task);
  told("copying the inputs", 0);
  const auto sets = input_sets(place, task, inputs, how.cache);
  const CacheFlush flush(place.l2_bytes());
  DeviceMeasurement measured{.input_sets = static_cast<std::int64_t>(sets.size()),
                             .library_workspace = workspace_of(task)};

  // The first run makes what is made once, by a library too; the second one's memory is the run's own.
  place.pool().start_peak();
  const OutputSet out(place, task);
  for (int i = 0; i < kWarmUps; ++i) launch(place, task, *sets[0], out);
  place.wait();
  measured.peak_memory = Bytes(static_cast<std::int64_t>(place.pool().peak()));

  const DriverFacts driver(device);
  EventTimer timer;
  for (std::int64_t i = 0; i < how.repeats; ++i) {
    told("timing", static_cast<double>(i) / static_cast<double>(how.repeats));
    if (how.cache == CacheState::cold) flush(place.stream());
    const InputSet& in = *sets[static_cast<std::size_t>(i % measured.input_sets)];
    measured.seconds.push_back(timer.seconds(place.stream(), [&] { launch(place, task, in, out); }));
  }
  measured.sm_clock_hz = driver.sm_clock_hz();
  measured.memory_clock_hz = driver.memory_clock_hz();

  told("counting", 1);
  count(place, task, *sets[0], out, flush, how, measured);
  measured.kernels = rung_of(task.kernel).resources(task);
  return measured;
}

}  // namespace flashsim
