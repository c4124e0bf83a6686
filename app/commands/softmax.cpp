// flashsim softmax: the ways to compute a softmax by itself, side by side.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/views/softmax_view.hpp"

namespace flashsim {

Result<int> softmax_command(const SoftmaxOptions& options, const OutputOptions& output) {
  const auto request = softmax_request_of(options);
  if (!request) return request.error();
  const auto report = make_softmax(*request);
  if (!report) return report.error();
  const auto error = emit(output, {.document = [&] { return softmax_document(*report); },
                                   .json = [&] { return softmax_json(*report); },
                                   .csv = [&] { return softmax_csv(*report); }});
  if (error) return *error;
  return report->predicted_equals_counted().value_or(true) ? kDone : kWrongResult;
}

}  // namespace flashsim
