// flashsim: the account of one algorithm.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/terminal.hpp"
#include "app/views/account_view.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {

Result<int> account_command(const AccountOptions& options, const OutputOptions& output) {
  const auto request = request_of(options);
  if (!request) return request.error();
  ProgressLine progress(request->machine.value_or(false) ? "running blocks" : "counting");
  const auto report = make_account(*request, [&](double done) { progress.show(done); });
  if (!report) return report.error();
  const auto error = emit(output, {.document = [&] { return account_document(*report, options.explain); },
                                   .json = [&] { return account_json(*report, options.explain); },
                                   .csv = [&] { return account_csv(*report, options.explain); }});
  if (error) return *error;
  return report->predicted_equals_counted().value_or(true) ? kDone : kWrongResult;
}

}  // namespace flashsim
