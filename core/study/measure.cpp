#include "core/study/measure.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/problem/device_machine.hpp"
#include "core/study/device_execution.hpp"
#include "core/study/kernel_account.hpp"
#include "core/study/measure_figures.hpp"
#include "core/study/method_choice.hpp"
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

/// What is asked of that kernel; of all kernels, what means nothing for it isn't asked of it.
AccountRequest asked_of(const KernelFacts& facts, const MeasureRequest& request) {
  AccountRequest account = request.account;
  if (request.asks_for_all()) {
    if (facts.algorithm != Algorithm::split_kv) account.splits.reset();
    if (facts.pass == Pass::forward) account.deterministic.reset();
  }
  account.algorithm = facts.algorithm;
  account.pass = facts.pass;
  return account;
}

/// The kernel's problem and its tensors: those of a run by it in, where none is asked for, its first storage
/// type.
Result<RunPlan> plan_of(const MeasureRequest& request, Kernel kernel) {
  const KernelFacts& facts = facts_of(kernel);
  Problem typed;
  typed.storage = request.account.dtype.value_or(facts.storage.front());
  if (auto error = check_kernel(kernel, typed, {})) return *error;
  RunRequest run{.account = asked_of(facts, request),
                 .q = request.q,
                 .k = request.k,
                 .v = request.v,
                 .d_o = request.d_o,
                 .seed = request.seed,
                 .magnitude = request.magnitude,
                 .device = RunDevice::cuda,
                 .kernel = kernel,
                 .backward = facts.pass == Pass::backward};
  run.account.dtype = typed.storage;
  if (auto error = check_method(run.account, facts.algorithm, typed)) return *error;
  if (run.d_o && !run.backward) {
    return Error{fmt::format("--do is '{}', and {} goes forward", *run.d_o, facts.name), "--pass backward"};
  }
  return plan_run(run);
}

/// The kernels to measure, planned; those that `all` passes over.
Outcome plan_kernels(const MeasureRequest& request, MeasureReport& report) {
  const KernelWish wish{
      .algorithm = request.account.algorithm, .pass = request.account.pass, .storage = request.account.dtype};
  std::vector<Kernel> wanted;
  if (request.asks_for_all()) {
    auto kernels = kernels_of(wish);
    if (!kernels) return kernels.error();
    wanted = std::move(kernels).value();
  } else {
    const auto kernel = choose_kernel(request.kernel ? request.kernel->one : std::nullopt, wish);
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
Result<AccountReport> account_of_kernel(const KernelReport& kernel, const MeasureRequest& request,
                                        const std::string& gpu, const DeviceProgress& progress) {
  const AccountRequest asked = asked_of(facts_of(kernel.kernel), request);
  KernelOnMachine on_machine{.kernel = kernel.kernel,
                             .problem = kernel.plan.problem,
                             .gpu = gpu,
                             .splits = asked.splits,
                             .deterministic = asked.deterministic.value_or(false)};
  auto account = account_of(on_machine, [&](double done) { progress("running blocks", done); });
  if (account) return account;
  const std::string why = account.error().message;
  on_machine.simulate = false;
  account = account_of(on_machine);
  if (account) account->not_simulated = why;
  return account;
}

/// Holds what came out against the truth.
void verify_kernel(const RunInputs<float>& inputs, const DeviceExecution& executed, KernelReport& kernel) {
  const RunPlan& plan = kernel.plan;
  kernel.verification = verify<float>(plan.problem, plan.method(), plan.switches, inputs.qkv,
                                      executed.outputs, {}, plan.threads);
  bool agrees = kernel.verification.agrees();
  bool says_nothing = kernel.verification.says_nothing();
  if (executed.gradients) {
    kernel.gradient_verification =
        verify_gradients<float>(plan.algorithm, plan.problem, kernel.account.method.tiling, plan.switches,
                                inputs.qkv, inputs.d_o, *executed.gradients, {}, plan.threads);
    agrees = agrees && kernel.gradient_verification->agrees();
    says_nothing = says_nothing || kernel.gradient_verification->says_nothing();
  }
  kernel.verdict = verdict_of(agrees, says_nothing, plan.switches.broken());
}

/// Executes, verifies and, where the result is right, measures. `device_failed` is set where it was the
/// device that gave the error.
Outcome measure_kernel(const DeviceBackend& device, const MeasureHow& how, const DeviceProgress& progress,
                       KernelReport& kernel, bool& device_failed) {
  const auto inputs = run_inputs<float>(kernel.plan, [&](double done) { progress("inputs", done); });
  if (!inputs) return inputs.error();
  const DeviceTask task{.kernel = kernel.kernel,
                        .problem = kernel.plan.problem,
                        .switches = {},
                        .method = kernel.account.method};
  progress(fmt::format("{} on the device", facts_of(kernel.kernel).name), 0);
  const auto executed = execute_on(device, task, inputs->qkv, inputs->d_o);
  device_failed = !executed.ok();
  if (device_failed) return executed.error();
  progress("comparing with the truth", 0);
  verify_kernel(*inputs, *executed, kernel);
  if (kernel.verdict == Verdict::wrong) return std::nullopt;
  auto measurement = device.measure(task, device_inputs_of(inputs->qkv, inputs->d_o), how, progress);
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

std::vector<CheckedTensor> KernelReport::checked() const {
  std::vector<CheckedTensor> tensors{{"O", &verification.output}, {"L", &verification.lse}};
  if (gradient_verification) {
    tensors.push_back({"dQ", &gradient_verification->dq});
    tensors.push_back({"dK", &gradient_verification->dk});
    tensors.push_back({"dV", &gradient_verification->dv});
  }
  return tensors;
}

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
        account_of_kernel(kernel, request, request.account.gpu.value_or(report.machine.name), told);
    if (!account) return account.error();
    kernel.account = std::move(account).value();
    kernel.plan.splits = kernel.account.splits;  // chosen for the machine
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
