// flashsim run: attention executed, on the CPU counted as well, and held against the truth.
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/option_parser.hpp"
#include "app/terminal.hpp"
#include "app/views/run_view.hpp"
#include "core/base/file.hpp"
#include "core/study/report_json.hpp"
#include "core/study/run.hpp"
#include "cuda/backend.hpp"

namespace flashsim {
namespace {

Result<bool> accumulation_named(const std::string& name) {
  if (name == "compute") return false;
  if (name == "storage") return true;
  return Error{fmt::format("--accumulate must be compute or storage, not '{}'", name), ""};
}

/// What the options ask for, apart from --input.
Result<RunRequest> given_run_request(const AccountOptions& account, const RunOptions& options) {
  RunRequest request;
  auto asked = given_request(account);
  if (!asked) return asked.error();
  request.account = std::move(asked).value();
  OptionParser parser;
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> threads;
  parser.finite("--scale", options.scale, request.scale);
  parser.parse(options.compute, request.compute, compute_type_named);
  parser.whole("--seed", options.seed, 0, std::numeric_limits<std::int64_t>::max(), seed);
  parser.finite("--magnitude", options.magnitude, request.magnitude);
  parser.parse(options.device, request.device, run_device_named);
  parser.parse(options.kernel, request.kernel, [](const std::string& name) { return kernel_named(name); });
  parser.parse(options.fault, request.fault, [](const std::string& name) { return fault_named(name); });
  parser.parse(options.accumulate, request.accumulate_in_storage, accumulation_named);
  parser.whole("--threads", options.threads, 1, kMostThreads, threads);
  if (parser.error()) return *parser.error();
  if (seed) request.seed = static_cast<std::uint64_t>(*seed);
  if (threads) request.threads = static_cast<int>(*threads);
  request.q = options.q;
  request.k = options.k;
  request.v = options.v;
  request.d_o = options.d_o;
  request.backward = options.backward;
  request.no_rescale = options.no_rescale;
  request.no_subtract_max = options.no_subtract_max;
  if (options.scenario.empty()) return request;
  auto scenario = find_scenario(options.scenario);
  if (!scenario) return scenario.error();
  request.scenario = std::move(scenario).value();
  return request;
}

Result<RunRequest> request_of(const AccountOptions& account, const RunOptions& options) {
  auto request = given_run_request(account, options);
  if (!request || !account.input) return request;
  if (!options.scenario.empty()) {
    return Error{fmt::format("run takes a scenario or --input, not both: '{}' and '{}'", options.scenario,
                             *account.input),
                 ""};
  }
  const auto text = read_file(*account.input);
  if (!text) return text.error();
  auto under = read_run_request(*text, fmt::format("'{}'", *account.input));
  if (!under) return under.error();
  return laid_over(std::move(request).value(), std::move(under).value());
}

/// One progress line after another, one for each phase.
class PhaseLines {
 public:
  /// A run from which on the truth takes long enough to say what is being waited for.
  static constexpr Flops kLongTruth{std::int64_t{500'000'000}};

  void show(RunPhase phase, Flops whole, double done) {
    constexpr double kGiga = 1e9;
    if (!line_ || phase != phase_) {
      phase_ = phase;
      line_.emplace(name_of(phase), static_cast<double>(whole.value()) / kGiga, "GFLOP/s");
      if (phase == RunPhase::truth && whole > kLongTruth) line_->announce();
    }
    if (phase != RunPhase::truth && phase != RunPhase::device) line_->show(done);
  }
  void finish() { line_.reset(); }

 private:
  static const char* name_of(RunPhase phase) {
    switch (phase) {
      case RunPhase::inputs: return "inputs";
      case RunPhase::forward: return "forward";
      case RunPhase::device: return "on the device";
      case RunPhase::backward: return "backward";
      case RunPhase::truth: return "comparing with the truth";
    }
    return "";
  }

  std::optional<ProgressLine> line_;
  RunPhase phase_{};
};

}  // namespace

Result<int> run_command(const AccountOptions& account, const RunOptions& options,
                        const OutputOptions& output) {
  const auto request = request_of(account, options);
  if (!request) return request.error();
  const auto plan = plan_run(*request);
  if (!plan) return plan.error();
  if (options.save) {
    if (auto error = check_save(*plan, *options.save)) return *error;
  }
  PhaseLines lines;
  std::optional<DeviceBackend> device;
  if (plan->kernel) device = cuda_backend();
  auto report = make_run(
      *plan, [&](RunPhase phase, Flops whole, double done) { lines.show(phase, whole, done); },
      device ? &*device : nullptr);
  lines.finish();
  if (!report) return report.error();
  if (options.save) {
    auto saved = save_run(*report, *options.save);
    if (!saved) return saved.error();
    report->saved = std::move(saved).value();
  }
  const auto error = emit(output, {.document = [&] { return run_document(*report, account.explain); },
                                   .json = [&] { return run_json(*report); },
                                   .csv = [&] { return run_csv(*report); }});
  if (error) return *error;
  return report->verdict == Verdict::wrong || !report->predicted_equals_counted().value_or(true)
             ? kWrongResult
             : kDone;
}

}  // namespace flashsim
