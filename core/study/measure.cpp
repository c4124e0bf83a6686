#include "core/study/measure.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/problem/device_machine.hpp"
#include "core/study/device_execution.hpp"
#include "core/study/measure_figures.hpp"
#include "core/study/run_inputs.hpp"
#include "core/study/run_memory.hpp"

namespace flashsim {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, sizeof "2026-11-30T01:33:21Z"> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// The kernel's problem and its tensors: those of a run with the kernel's tiles and, where none is asked for,
/// its first storage type.
Result<RunPlan> plan_of(const MeasureRequest& request, Kernel kernel) {
  const KernelFacts& facts = facts_of(kernel);
  Problem typed;
  typed.storage = request.account.dtype.value_or(facts.storage.front());
  if (auto error = check_kernel(kernel, typed, {})) return *error;
  RunRequest run{.account = request.account,
                 .compute = NumberType::fp32,
                 .q = request.q,
                 .k = request.k,
                 .v = request.v,
                 .seed = request.seed,
                 .magnitude = request.magnitude};
  run.account.algorithm = facts.algorithm;
  run.account.dtype = typed.storage;
  auto plan = plan_run(run);
  if (!plan) return plan.error();
  if (auto error = check_kernel(kernel, plan->problem, {})) return *error;
  plan->tiling = method_of(kernel, plan->problem).tiling;
  return plan;
}

/// The kernels to measure, planned; those that `all` passes over.
Outcome plan_kernels(const MeasureRequest& request, MeasureReport& report) {
  const bool all = request.asks_for_all();
  std::vector<Kernel> wanted;
  if (all) {
    auto kernels = kernels_of(request.account.algorithm);
    if (!kernels) return kernels.error();
    wanted = std::move(kernels).value();
  } else {
    const auto kernel =
        choose_kernel(request.kernel ? request.kernel->one : std::nullopt, request.account.algorithm);
    if (!kernel) return kernel.error();
    wanted = {*kernel};
  }
  Outcome first;
  for (const Kernel kernel : wanted) {
    auto plan = plan_of(request, kernel);
    if (plan) {
      report.kernels.push_back({.kernel = kernel, .plan = std::move(plan).value()});
    } else {
      if (!first) first = plan.error();
      report.left_out.push_back({.kernel = kernel, .why = plan.error().message});
    }
  }
  return report.kernels.empty() ? first : std::nullopt;
}

Result<Machine> machine_of(const std::optional<std::string>& gpu, const DeviceFacts& device) {
  if (gpu) return find_machine(*gpu);
  auto machine = machine_of_device(device.name, device.memory);
  if (machine) return *std::move(machine);
  return Error{fmt::format("no machine file fits the GPU here, '{}'", device.name),
               "write one with flashsim calibrate --out FILE, and give it by --gpu FILE"};
}

/// The account of the kernel's method on the machine. Where its blocks can't be simulated there is no
/// simulation, and not_simulated says why.
Result<AccountReport> account_of(const RunPlan& plan, Kernel kernel, const std::string& gpu,
                                 const DeviceProgress& progress) {
  const Problem& p = plan.problem;
  AccountSources sources;
  sources.habits = habits_of(kernel, p);
  AccountRequest request{.algorithm = plan.algorithm,
                         .batch = p.batch,
                         .heads = p.heads,
                         .kv_heads = p.kv_heads,
                         .seq = p.seq,
                         .kv_seq = p.kv_seq,
                         .head_dim = p.head_dim,
                         .dtype = p.storage,
                         .causal = p.causal,
                         .alignment = p.alignment,
                         .tiles = {plan.tiling.query_rows, plan.tiling.key_rows},
                         .gpu = gpu,
                         .machine = true};
  auto account = make_account(
      request, [&](double done) { progress("running blocks", done); }, sources);
  if (account) return account;
  const std::string why = account.error().message;
  request.machine = false;
  account = make_account(request);
  if (account) account->not_simulated = why;
  return account;
}

/// Executes, verifies and, where the result is right, measures. `device_failed` is set where it was the
/// device that gave the error.
Outcome measure_kernel(const DeviceBackend& device, const MeasureHow& how, const DeviceProgress& progress,
                       KernelReport& kernel, bool& device_failed) {
  const RunPlan& plan = kernel.plan;
  auto inputs = run_inputs<float>(plan, [&](double done) { progress("inputs", done); });
  if (!inputs) return inputs.error();
  const Inputs<float>& qkv = inputs->qkv;
  const DeviceTask task{.kernel = kernel.kernel, .problem = plan.problem, .switches = {}};
  progress(fmt::format("{} on the device", facts_of(kernel.kernel).name), 0);
  const auto executed = execute_on(device, task, qkv);
  device_failed = !executed.ok();
  if (device_failed) return executed.error();
  progress("comparing with the truth", 0);
  kernel.verification =
      verify<float>(plan.problem, plan.method(), plan.switches, qkv, executed->outputs, {}, plan.threads);
  kernel.verdict = kernel.verification.verdict();
  if (kernel.verdict == Verdict::wrong) return std::nullopt;
  auto measurement =
      device.measure(task, {.q = qkv.q.data(), .k = qkv.k.data(), .v = qkv.v.data()}, how, progress);
  device_failed = !measurement.ok();
  if (device_failed) return measurement.error();
  if (measurement->seconds.empty()) {
    device_failed = true;
    return Error{fmt::format("the device timed no run of {}", facts_of(kernel.kernel).name), ""};
  }
  kernel.measurement = std::move(measurement).value();
  return std::nullopt;
}

}  // namespace

const ByteFigure& KernelReport::figure(ByteFigureKind kind) const {
  return *std::find_if(bytes.begin(), bytes.end(), [&](const ByteFigure& each) { return each.kind == kind; });
}

std::optional<std::int64_t> KernelReport::counter(std::string_view what) const {
  if (!measurement) return std::nullopt;
  for (const CounterReading& reading : measurement->counters) {
    if (reading.what == what) return reading.value;
  }
  return std::nullopt;
}

std::optional<double> KernelReport::sm_clock_hz() const {
  if (!measurement) return std::nullopt;
  if (const auto counted = counter("sm_clock_hz")) return static_cast<double>(*counted);
  return measurement->sm_clock_hz;
}

bool MeasureReport::right() const {
  const auto is_right = [](const KernelReport& kernel) {
    return kernel.verdict != Verdict::wrong && kernel.account.predicted_equals_counted().value_or(true);
  };
  return std::all_of(kernels.begin(), kernels.end(), is_right) &&
         std::none_of(left_out.begin(), left_out.end(), [](const LeftOutKernel& k) { return k.failed; });
}

Result<MeasureReport> make_measurement(const MeasureRequest& request, const DeviceBackend& device,
                                       const DeviceProgress& progress) {
  const auto told = [&](std::string_view phase, double done) {
    if (progress) progress(phase, done);
  };
  MeasureReport report{.request = request};
  const MeasureHow usual;
  report.how = {.cache = request.cache.value_or(usual.cache),
                .repeats = request.repeats.value_or(usual.repeats),
                .counters = request.counters.value_or(usual.counters)};
  if (auto error = plan_kernels(request, report)) return *error;
  const auto facts = device.facts();
  if (!facts) return facts.error();
  report.device = *facts;
  auto machine = machine_of(request.account.gpu, report.device);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();
  report.date = utc_now();

  std::vector<KernelReport> planned = std::move(report.kernels);
  report.kernels.clear();
  Outcome first;
  for (KernelReport& kernel : planned) {
    auto account =
        account_of(kernel.plan, kernel.kernel, request.account.gpu.value_or(report.machine.name), told);
    if (!account) return account.error();
    kernel.account = std::move(account).value();
    bool failed = false;
    Outcome error;
    try {
      error = measure_kernel(device, report.how, told, kernel, failed);
    } catch (const std::bad_alloc&) {
      error = not_enough_memory(kernel.plan);
    }
    if (error && (!failed || !request.asks_for_all())) return *error;
    if (error) {
      if (!first) first = error;
      report.left_out.push_back({.kernel = kernel.kernel, .why = error->message, .failed = true});
      continue;
    }
    if (kernel.measurement) {
      kernel.bytes = byte_figures(kernel.account, *kernel.measurement);
      kernel.time = time_figure(kernel.account, *kernel.measurement);
      kernel.differences = differences_of(kernel, report.how, report.machine);
    }
    report.kernels.push_back(std::move(kernel));
  }
  if (report.kernels.empty()) return *first;
  return report;
}

}  // namespace flashsim
