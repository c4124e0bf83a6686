// flashsim measure: kernels on the GPU here, their counters and time beside the model.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/named_phases.hpp"
#include "app/views/measure_view.hpp"
#include "core/study/measure.hpp"
#include "cuda/backend.hpp"

namespace flashsim {

Result<int> measure_command(const AccountOptions& account, const MeasureOptions& options,
                            const OutputOptions& output) {
  const auto request = measure_request_of(account, options);
  if (!request) return request.error();
  NamedPhases phases;
  const auto report = make_measurement(
      *request, cuda_backend(), [&](std::string_view phase, double done) { phases.show(phase, done); });
  phases.finish();
  if (!report) return report.error();
  const auto error = emit(output, {.document = [&] { return measure_document(*report); },
                                   .json = [&] { return measure_json(*report); },
                                   .csv = [&] { return measure_csv(*report); }});
  if (error) return *error;
  return report->right() ? kDone : kWrongResult;
}

}  // namespace flashsim
