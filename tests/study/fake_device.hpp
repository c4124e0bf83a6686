// A device for tests: the CPU executes, and counters and clocks say what a test makes them say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/attention/attend.hpp"
#include "core/study/kernel_account.hpp"
#include "core/study/measure.hpp"
#include "core/study/measure_figures.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim::test {

struct FakeDevice {
  DeviceFacts facts{.name = "NVIDIA H200",
                    .compute_capability = "9.0",
                    .driver = "580.159.04",
                    .runtime = "13.0",
                    .memory = Bytes(std::int64_t{150109880320}),
                    .free_memory = Bytes(std::int64_t{149000000000})};
  std::function<void(DeviceOutputs&)> spoil = [](DeviceOutputs&) {};
  DeviceMeasurement measurement{.seconds = {2e-3}};
  std::optional<Error> no_device, no_execution, no_measurement;
  int executed = 0;
  int measured = 0;
  MeasureHow asked;  ///< of the last measurement
  DeviceTask task;   ///< the last one

  /// Must not outlive the fake.
  DeviceBackend backend() {
    DeviceBackend backend;
    backend.facts = [this]() -> Result<DeviceFacts> {
      if (no_device) return *no_device;
      return facts;
    };
    backend.execute = [this](const DeviceTask& given, const DeviceInputs& inputs) -> Result<DeviceOutputs> {
      ++executed;
      task = given;
      if (no_execution) return *no_execution;
      return execute(given, inputs);
    };
    backend.measure = [this](const DeviceTask&, const DeviceInputs&, const MeasureHow& how,
                             const DeviceProgress& progress) -> Result<DeviceMeasurement> {
      ++measured;
      asked = how;
      if (no_measurement) return *no_measurement;
      if (progress) progress("repeats", 1);
      return measurement;
    };
    return backend;
  }

 private:
  [[nodiscard]] DeviceOutputs execute(const DeviceTask& given, const DeviceInputs& inputs) const {
    const Problem& p = given.problem;
    Inputs<float> qkv{.q = Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim),
                      .k = Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                      .v = Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                      .scores = {}};
    qkv.q.data().assign(inputs.q.begin(), inputs.q.end());
    qkv.k.data().assign(inputs.k.begin(), inputs.k.end());
    qkv.v.data().assign(inputs.v.begin(), inputs.v.end());
    const bool backward = facts_of(given.kernel).pass == Pass::backward;
    const Method forward = backward ? method_of(kSavesForBackward, p) : given.method;
    Outputs<float> outputs = attend<float>(p, forward, given.switches, qkv);
    DeviceOutputs out{.kernels = measurement.kernels, .seconds = {3e-3}};
    if (backward) add_gradients(given, qkv, inputs.d_o, outputs, out);
    out.o = std::move(outputs.o.data());
    out.lse = std::move(outputs.lse.data());
    spoil(out);
    return out;
  }

  static void add_gradients(const DeviceTask& given, const Inputs<float>& qkv, std::span<const float> d_o,
                            const Outputs<float>& outputs, DeviceOutputs& out) {
    const Problem& p = given.problem;
    Tensor4<float> gradient(p.batch, p.heads, p.seq, p.head_dim);
    REQUIRE(d_o.size() == gradient.data().size());
    gradient.data().assign(d_o.begin(), d_o.end());
    Gradients<float> gradients = attend_backward<float>(given.method.algorithm, p, given.method.tiling,
                                                        given.switches, qkv, outputs, gradient);
    out.d_q = std::move(gradients.dq.data());
    out.d_k = std::move(gradients.dk.data());
    out.d_v = std::move(gradients.dv.data());
    out.seconds = {8e-3};
  }
};

/// A small problem: it has to be executed.
inline MeasureRequest small_request(std::optional<Kernel> kernel = Kernel::flash_fp32) {
  MeasureRequest request;
  request.account.seq = 200;
  request.account.heads = 2;
  request.account.head_dim = 64;
  request.kernel = KernelChoice{kernel};
  return request;
}

inline MeasureReport measured(FakeDevice& device, const MeasureRequest& request) {
  auto report = make_measurement(request, device.backend());
  INFO(hint_of(report));
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

/// A measurement in which every counter and the time are what the model says.
inline DeviceMeasurement as_modelled(const KernelReport& kernel) {
  DeviceMeasurement m{.seconds = {kernel.time->model->value}, .bytes = ByteSource::measured};
  for (const std::string_view what : kCounters) {
    CounterReading reading{.what = std::string(what), .metric = "metric_of_" + std::string(what)};
    for (const ByteFigure& figure : kernel.bytes) {
      if (figure.name() == what) reading.value = figure.model->value();
    }
    if (what == "shared_wavefronts") reading.value = 1000;
    if (what == "tensor_instructions") reading.value = 0;
    if (what == "exponential_instructions") reading.value = 2000;
    if (what == "sm_clock_hz") reading.value = 1'980'000'000;
    m.counters.push_back(std::move(reading));
  }
  m.peak_memory = *kernel.figure(ByteFigureKind::peak_memory).model;
  for (const Occupancy& occupancy : kernel.account.kernels) {
    m.kernels.push_back({.name = occupancy.kernel,
                         .registers_per_thread = 128,
                         .local_memory_per_thread = Bytes(),
                         .shared_memory_per_block = Bytes(std::int64_t{1024}),
                         .threads_per_block = 128,
                         .blocks = occupancy.blocks.value(),
                         .blocks_per_sm = occupancy.blocks_per_sm});
  }
  return m;
}

/// What a kernel's model says of a request, on a device that says the same.
inline FakeDevice modelled_device(const MeasureRequest& request) {
  FakeDevice device;
  device.measurement = as_modelled(measured(device, request).kernels.front());
  device.executed = device.measured = 0;
  return device;
}

/// A kernel that nobody executed, measured as the model of an H200 has it.
inline KernelReport modelled_kernel(Kernel kernel, std::int64_t seq, std::int64_t heads,
                                    std::int64_t head_dim) {
  KernelReport report{.kernel = kernel};
  Problem& p = report.plan.problem;
  p = {.heads = heads, .kv_heads = heads, .seq = seq, .kv_seq = seq, .head_dim = head_dim};
  p.storage = facts_of(kernel).storage.front();
  report.plan.algorithm = facts_of(kernel).algorithm;
  auto account = account_of({.kernel = kernel, .problem = p, .gpu = "h200-measured", .count_never = true});
  REQUIRE(message_of(account) == kNoError);
  report.account = std::move(account).value();
  const DeviceMeasurement none{.seconds = {1}};
  report.bytes = byte_figures(report.account, none);
  report.time = time_figure(report.account, none);
  report.measurement = as_modelled(report);
  return report;
}

inline CounterReading& reading_of(DeviceMeasurement& measurement, std::string_view what) {
  for (CounterReading& reading : measurement.counters) {
    if (reading.what == what) return reading;
  }
  FAIL("no reading of that name");
  return measurement.counters.front();
}

}  // namespace flashsim::test
