// A measurement: kernels executed on a GPU, their results held against float64 truth, and what the GPU's
// counters and clock see of the right ones beside what the model says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/attention/verdict.hpp"
#include "core/attention/verification.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/device.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/machine.hpp"
#include "core/study/account.hpp"
#include "core/study/measure_request.hpp"
#include "core/study/run_plan.hpp"

namespace flashsim {

/// What a byte figure is of.
enum class ByteFigureKind { sm_read, sm_written, hbm_read, hbm_written, papers_hbm, peak_memory };

/// An amount of bytes beside what the model has for it.
struct ByteFigure {
  ByteFigureKind kind{};
  std::optional<Bytes> model;  ///< absent: the blocks weren't simulated
  std::optional<Bytes> seen;   ///< absent: nobody counted it
  bool missing = false;        ///< counters were read, and the chip has none for this

  /// "sm_read_bytes": in JSON and CSV.
  [[nodiscard]] std::string_view name() const;

  /// seen / model − 1, infinite where the model has none and some was seen; absent without both.
  [[nodiscard]] std::optional<double> difference() const;
};

/// The time of a kernel over its repeats.
struct TimeFigure {
  std::optional<Seconds> model;
  std::string no_model;  ///< why there is none
  Seconds median, least, most;
  [[nodiscard]] std::optional<double> difference() const;
};

/// A figure that is more than kWorthASentence off, and what it rests on that is known.
struct Difference {
  std::string figure;  ///< "hbm_write_bytes", "seconds"
  double share = 0;    ///< of the model
  std::vector<std::string> sentences;
  bool explained = false;
};

/// From this share of the model on a difference has to be spoken of.
inline constexpr double kWorthASentence = 0.05;

/// How far off `seen` is, as a share of the model.
constexpr double share_off(double seen, double model) { return seen / model - 1; }

/// A tensor that was held against the truth.
struct CheckedTensor {
  std::string_view name;  ///< "O", "dK"
  const Comparison* comparison;
};

/// One kernel, on its problem.
struct KernelReport {
  Kernel kernel{};
  RunPlan plan;               ///< the problem and the tensors
  AccountReport account;      ///< of the kernel's method on the machine, simulated
  Verification verification;  ///< of O and L: the kernel's, or those that its gradients were made of
  std::optional<GradientVerification> gradient_verification;  ///< of a kernel of the backward pass
  Verdict verdict{};
  std::optional<DeviceMeasurement> measurement;  ///< absent where the result is wrong
  std::vector<ByteFigure> bytes;                 ///< empty without a measurement
  std::optional<TimeFigure> time;
  std::vector<Difference> differences;

  /// O and L, and the gradients where there are some. The comparisons are those of this report.
  [[nodiscard]] std::vector<CheckedTensor> checked() const;
  [[nodiscard]] const ByteFigure& figure(ByteFigureKind kind) const;
  /// The reading of that name; absent where it wasn't taken or the chip hasn't it.
  [[nodiscard]] std::optional<std::int64_t> counter(std::string_view what) const;
  /// What the SMs ran at: while they were counted, else right after the repeats.
  [[nodiscard]] std::optional<double> sm_clock_hz() const;
};

/// A kernel that --kernel all passes over, and why.
struct LeftOutKernel {
  Kernel kernel{};
  std::string why;
  bool failed = false;  ///< it takes the problem, and the device gave an error
};

struct MeasureReport {
  MeasureRequest request;  ///< as it was asked
  MeasureHow how;
  DeviceFacts device;
  Machine machine;
  std::string date;  ///< UTC: "2026-11-30T01:33:21Z"
  std::vector<KernelReport> kernels;
  std::vector<LeftOutKernel> left_out;

  /// Nothing failed or came out wrong, and every account was what its walk counted.
  [[nodiscard]] bool right() const;
};

/// Measures what `request` asks for on `device`. `progress` is told what is done, and how much of it.
/// Errors: whatever is wrong with the request, no machine file for the GPU, what the device says.
Result<MeasureReport> make_measurement(const MeasureRequest& request, const DeviceBackend& device,
                                       const DeviceProgress& progress = {});

/// "flashsim.measure/1"
nlohmann::ordered_json measure_json(const MeasureReport& report);

/// What the differences over kWorthASentence come from, as far as anything that was read tells.
std::vector<Difference> differences_of(const KernelReport& kernel, const MeasureHow& how,
                                       const Machine& machine);

}  // namespace flashsim
