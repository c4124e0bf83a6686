#include "core/study/run.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <filesystem>
#include <new>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "core/attention/attend.hpp"
#include "core/base/file.hpp"
#include "core/base/npy.hpp"
#include "core/base/quantity_text.hpp"
#include "core/problem/device_machine.hpp"
#include "core/study/account.hpp"
#include "core/study/device_execution.hpp"
#include "core/study/nothing_broke.hpp"
#include "core/study/run_inputs.hpp"
#include "core/study/run_memory.hpp"

namespace flashsim {
namespace {

/// A ledger for each thread of an execution, and what they count together.
class Ledgers {
 public:
  explicit Ledgers(const RunPlan& plan)
      : ledgers_(static_cast<std::size_t>(plan.threads), Ledger(plan.problem)) {}

  [[nodiscard]] std::vector<Listener*> listeners() {
    std::vector<Listener*> all;
    for (Ledger& ledger : ledgers_) all.push_back(&ledger);
    return all;
  }
  [[nodiscard]] Tally tally() const { return added_up(ledgers_); }

 private:
  std::vector<Ledger> ledgers_;
};

/// What the closed form says of an execution that walks every head.
Tally expected_of(const RunPlan& plan, Pass pass = Pass::forward) {
  const Method method = plan.method(pass);
  Tally expected = predict(plan.problem, method).tally;
  expected.steps = expected.steps * walks_of(plan.problem, method);
  expected.peak_allocated = Bytes();
  return expected;
}

/// Executes one pass, timed and counted. `work` gets the execution.
template <class Work>
void execute(const RunPlan& plan, RunPhase phase, const RunProgress& progress, PassReport& pass, Work work) {
  Ledgers ledgers(plan);
  Execution execution{.threads = plan.threads, .listeners = ledgers.listeners()};
  if (progress) execution.progress = [&](double done) { progress(phase, pass.flops, done); };
  const auto start = std::chrono::steady_clock::now();
  work(execution);
  pass.seconds = {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  pass.counted = ledgers.tally();
}

PassReport forward_pass(const RunPlan& plan) {
  const Count exact = problem_flops(plan.problem, plan.method()).exact.value();
  if (!plan.tensors.scores_given()) {
    return {.flops = Flops(exact), .flops_formula = "4·d for each visible pair: Q Kᵀ and P V"};
  }
  return {.flops = Flops(Count(exact.value() / 2)),
          .flops_formula = "2·d for each visible pair: P V, the scores are given"};
}

PassReport backward_pass(const RunPlan& plan) {
  const Count exact = problem_flops(plan.problem, plan.method()).exact.value();
  const Count two_d(exact.value() / 2);  // 2·d for each visible pair: one product
  if (plan.algorithm == Algorithm::flash2) {
    return {.flops = Flops(two_d * 5),
            .flops_formula = "10·d for each visible pair: S again, dV, dP, dQ and dK"};
  }
  return {.flops = Flops(two_d * 4),
          .flops_formula = "8·d for each visible pair: dV, dP, dQ and dK; P is made again, uncounted"};
}

/// Parts of the keys that were chosen for no GPU in particular are chosen for the one that is here, where its
/// machine is known.
void choose_splits_here(const DeviceFacts& device, RunPlan& plan) {
  if (!plan.splits || !plan.splits->automatic || plan.gpu_given) return;
  const auto machine = machine_of_device(device.name, device.memory);
  if (!machine) return;
  plan.gpu = machine->name;
  plan.splits = choose_splits(plan.problem, plan.tiling, machine->sms, {});
}

/// Executes the forward pass by the plan's kernel.
Outcome execute_kernel(const RunPlan& plan, const DeviceBackend& device, const Inputs<float>& qkv,
                       RunReport& report, Outputs<float>& outputs) {
  auto executed = execute_on(device, plan.task(), qkv);
  if (!executed) return executed.error();
  report.forward.seconds = executed->seconds;
  outputs = std::move(executed->outputs);
  return std::nullopt;
}

/// Executes the backward pass by its kernel.
Outcome execute_backward_kernel(const RunPlan& plan, const DeviceBackend& device, const Inputs<float>& qkv,
                                const Tensor4<float>& d_o, RunReport& report,
                                std::optional<Gradients<float>>& gradients) {
  auto executed = execute_on(device, plan.task(Pass::backward), qkv, d_o);
  if (!executed) return executed.error();
  report.backward->seconds = executed->seconds;
  report.backward->predicted = expected_of(plan, Pass::backward);
  gradients = std::move(executed->gradients);
  return std::nullopt;
}

/// Executes the forward pass on the CPU, and counts it.
template <class T>
void follow_walk(const RunPlan& plan, const RunProgress& progress, const Inputs<T>& qkv, RunReport& report,
                 Outputs<T>& outputs) {
  execute(plan, RunPhase::forward, progress, report.forward, [&](const Execution& execution) {
    outputs = attend<T>(plan.problem, plan.method(), plan.switches, qkv, execution);
  });
  report.discrepancies = discrepancies(report.forward.predicted, *report.forward.counted);
}

/// Executes the backward pass on the CPU, and counts it.
template <class T>
void follow_backward_walk(const RunPlan& plan, const RunProgress& progress, const RunInputs<T>& inputs,
                          RunReport& report, RunResults<T>& results) {
  PassReport& pass = *report.backward;
  execute(plan, RunPhase::backward, progress, pass, [&](const Execution& execution) {
    results.gradients = attend_backward<T>(plan.algorithm, plan.problem, plan.tiling, plan.switches,
                                           inputs.qkv, results.outputs, inputs.d_o, execution);
  });
  pass.predicted = expected_of(plan, Pass::backward);
  report.backward_discrepancies = discrepancies(pass.predicted, *pass.counted);
}

/// The verdict on all that was checked, and why.
void judge(RunReport& report) {
  const Verification& forward = report.verification;
  const auto& backward = report.gradient_verification;
  const bool agrees = forward.agrees() && (!backward || backward->agrees());
  const bool says_nothing = forward.says_nothing() || (backward && backward->says_nothing());
  const Switches& switches = report.plan.switches;
  report.verdict = verdict_of(agrees, says_nothing, switches.broken());
  if (report.verdict == Verdict::broken) report.why = why_broken(switches);
  if (report.verdict == Verdict::wrong && forward.tolerance.scores_may_overflow()) {
    report.why = fmt::format("{} stores S in {}, which scores of up to {} may overflow",
                             facts_of(report.plan.algorithm).name, name_of(report.plan.problem.storage),
                             three_digits(forward.tolerance.magnitudes.score));
  }
  if (report.verdict == Verdict::right && switches.broken()) {
    report.why = why_nothing_broke(report.plan, forward.tolerance.magnitudes);
  }
}

template <class T>
Outcome run_in(const RunPlan& plan, const RunProgress& progress, const DeviceBackend* device,
               RunReport& report) {
  const auto told = [&](RunPhase phase, Flops whole, double done) {
    if (progress) progress(phase, whole, done);
  };
  auto inputs = run_inputs<T>(plan, [&](double done) { told(RunPhase::inputs, Flops(), done); });
  if (!inputs) return inputs.error();
  const Inputs<T>& qkv = inputs->qkv;
  const Tensor4<T>& d_o = inputs->d_o;
  RunResults<T> results;
  report.forward.predicted = expected_of(plan);
  if constexpr (std::is_same_v<T, float>) {
    if (plan.kernel) {
      told(RunPhase::device, report.forward.flops, 0);
      if (auto error = execute_kernel(plan, *device, qkv, report, results.outputs)) return error;
    }
  }
  if (!plan.kernel) follow_walk<T>(plan, progress, qkv, report, results.outputs);
  if (plan.backward) {
    report.backward = backward_pass(plan);
    if (!plan.kernel) follow_backward_walk<T>(plan, progress, *inputs, report, results);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (plan.backward_kernel) {
      told(RunPhase::device, report.backward->flops, 0);
      if (auto error = execute_backward_kernel(plan, *device, qkv, d_o, report, results.gradients))
        return error;
    }
  }
  told(RunPhase::truth, report.forward.flops, 0);
  report.verification =
      verify<T>(plan.problem, plan.method(), plan.switches, qkv, results.outputs, {}, plan.threads);
  if (plan.backward) {
    report.gradient_verification =
        verify_gradients<T>(plan.algorithm, plan.problem, plan.method(Pass::backward).tiling, plan.switches,
                            qkv, d_o, *results.gradients, {}, plan.threads);
  }
  if (!report.verification.agrees()) {
    report.first_fault = first_fault<T>(plan.problem, plan.method(), plan.switches, qkv, report.verification);
  }
  judge(report);
  report.results = std::move(results);
  return std::nullopt;
}

std::string file_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

/// The files that a run is saved to.
std::vector<const char*> saved_names(bool backward) {
  std::vector<const char*> names{"o.npy", "lse.npy"};
  if (backward) names.insert(names.end(), {"dq.npy", "dk.npy", "dv.npy"});
  return names;
}

template <class T>
Result<std::vector<std::string>> save(const RunResults<T>& results, const std::string& folder) {
  constexpr int kDimensions = 4;
  std::vector<std::string> paths;
  for (const char* name : saved_names(results.gradients.has_value())) paths.push_back(file_in(folder, name));
  if (auto error = write_npy(paths[0], results.outputs.o, kDimensions)) return *error;
  if (auto error = write_npy(paths[1], results.outputs.lse, kDimensions - 1, NpyRow::number)) return *error;
  if (results.gradients) {
    if (auto error = write_npy(paths[2], results.gradients->dq, kDimensions)) return *error;
    if (auto error = write_npy(paths[3], results.gradients->dk, kDimensions)) return *error;
    if (auto error = write_npy(paths[4], results.gradients->dv, kDimensions)) return *error;
  }
  return paths;
}

}  // namespace

Result<RunReport> make_run(const RunPlan& given, const RunProgress& progress, const DeviceBackend* device) {
  RunReport report{.plan = given, .forward = forward_pass(given)};
  RunPlan& plan = report.plan;
  // Backward there are at most two and a half times as many.
  const Count flops = problem_flops(plan.problem, plan.method()).exact.value() * 3;
  if (expected_of(plan).overflowed() || flops.overflowed()) {
    return leaves_64_bits(plan.algorithm, plan.problem);
  }
  if (plan.kernel) {
    assert(device != nullptr);
    auto facts = device->facts();
    if (!facts) return facts.error();
    report.device = std::move(facts).value();
    choose_splits_here(*report.device, plan);
  }
  try {
    const bool wide = plan.compute == NumberType::fp64;
    if (auto error = wide ? run_in<double>(plan, progress, device, report)
                          : run_in<float>(plan, progress, device, report)) {
      return *error;
    }
  } catch (const std::bad_alloc&) {
    return not_enough_memory(plan);
  }
  return report;
}

std::vector<NamedFormula> formulas_of(const Tolerance& tolerance) {
  std::vector<NamedFormula> formulas = tolerance.steps;
  const auto add = [&](const char* tensor, const RealFormula& formula) {
    formulas.push_back({tensor, fmt::format("an element of {} may be off by", tensor), formula});
  };
  if (tolerance.backward) {
    add("dQ", tolerance.dq);
    add("dK", tolerance.dk);
    add("dV", tolerance.dv);
  } else {
    add("O", tolerance.output);
    add("L", tolerance.lse);
  }
  return formulas;
}

Outcome check_save(const RunPlan& plan, const std::string& folder) {
  if (auto error = check_folder_writable(folder)) return error;
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  for (const char* name : saved_names(plan.backward)) {
    if (auto error = check_writable(file_in(folder, name))) return error;
  }
  return std::nullopt;
}

Result<std::vector<std::string>> save_run(const RunReport& report, const std::string& folder) {
  if (auto error = make_folder(folder)) return *error;
  return std::visit([&](const auto& results) { return save(results, folder); }, report.results);
}

}  // namespace flashsim
