// A run: attention executed on the CPU, its steps counted, or on a device; its result held against float64
// truth.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/account/check.hpp"
#include "core/account/tally.hpp"
#include "core/attention/first_fault.hpp"
#include "core/attention/tensors.hpp"
#include "core/attention/verdict.hpp"
#include "core/attention/verification.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/device.hpp"
#include "core/study/run_plan.hpp"

namespace flashsim {

enum class RunPhase { inputs, forward, device, backward, truth };

/// Told now and then how far a phase is, from 0 to 1, and how many FLOPs the whole of it has; by one thread
/// at a time. A device and the truth are told once, when they
/// begin.
using RunProgress = std::function<void(RunPhase phase, Flops whole, double done)>;

/// One pass as it was executed.
struct PassReport {
  Seconds seconds;  ///< of the execution alone
  Flops flops;      ///< for the visible pairs alone
  std::string flops_formula;
  Tally predicted;               ///< over all heads, and without a peak
  std::optional<Tally> counted;  ///< the same, as it was walked; absent where a device ran

  /// What is known best of what it moved.
  [[nodiscard]] const Tally& tally() const { return counted ? *counted : predicted; }
  [[nodiscard]] FlopsPerSecond rate() const { return flops / seconds; }
};

/// What came out, in the compute type.
template <class T>
struct RunResults {
  Outputs<T> outputs;
  std::optional<Gradients<T>> gradients;
};

struct RunReport {
  RunPlan plan;
  std::optional<DeviceFacts> device;  ///< absent: the CPU
  PassReport forward;
  std::optional<PassReport> backward;
  std::vector<Discrepancy> discrepancies;           ///< of the forward pass, predicted against counted
  std::vector<Discrepancy> backward_discrepancies;  ///< and of the backward pass
  Verification verification;
  std::optional<GradientVerification> gradient_verification;
  std::optional<FirstFault> first_fault;
  Verdict verdict{};
  /// In one sentence, why it is broken, or why nothing broke although something was switched; else "".
  std::string why;
  std::variant<RunResults<float>, RunResults<double>> results;
  std::vector<std::string> saved;  ///< paths of the files that were written

  /// true, false, or absent where nothing was counted.
  [[nodiscard]] std::optional<bool> predicted_equals_counted() const {
    if (!forward.counted) return std::nullopt;
    return discrepancies.empty() && backward_discrepancies.empty();
  }
};

/// Carries `given` out, on `device` where it has a kernel; its report's plan has what the device decides.
/// Errors: tensors that can't be read, too little memory, counts beyond 64 bits, what the device says.
Result<RunReport> make_run(const RunPlan& given, const RunProgress& progress = {},
                           const DeviceBackend* device = nullptr);

/// The steps of a tolerance's derivation, and the bounds that they lead to, which are called by their
/// tensors.
std::vector<NamedFormula> formulas_of(const Tolerance& tolerance);

/// What would keep save_run from writing into the folder, as far as it can be told beforehand.
Outcome check_save(const RunPlan& plan, const std::string& folder);

/// Writes o.npy and lse.npy, and after a backward pass dq.npy, dk.npy and dv.npy, in the compute type, each
/// whole or not at all, and gives their paths. The folder is made where it is missing.
Result<std::vector<std::string>> save_run(const RunReport& report, const std::string& folder);

}  // namespace flashsim
