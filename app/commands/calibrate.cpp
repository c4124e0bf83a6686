// flashsim calibrate: the rates of the GPU here, measured, as a machine file.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/named_phases.hpp"
#include "app/views/calibrate_view.hpp"
#include "core/problem/machine_json.hpp"
#include "core/study/calibrate.hpp"
#include "cuda/backend.hpp"

namespace flashsim {

Result<int> calibrate_command(const OutputOptions& output) {
  NamedPhases phases;
  const auto report = make_calibration(
      cuda_backend(), [&](std::string_view phase, double done) { phases.show(phase, done); });
  phases.finish();
  if (!report) return report.error();
  const Forms forms{.document = [&] { return calibrate_document(*report); },
                    .json = [&] { return machine_json(report->machine); },
                    .csv = [&] { return calibrate_csv(*report); }};
  const bool table = output.format == "table";
  if (output.file) {
    // What a file is wanted for is the machine; the table is for who waits at the terminal.
    if (auto error = emit({.format = table ? "json" : output.format, .file = output.file}, forms)) {
      return *error;
    }
  }
  if (!output.file || table) {
    if (auto error = emit({.format = output.format, .file = std::nullopt}, forms)) return *error;
  }
  return kDone;
}

}  // namespace flashsim
