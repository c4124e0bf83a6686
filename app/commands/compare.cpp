// flashsim compare: every algorithm side by side.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/terminal.hpp"
#include "app/views/compare_view.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {

Result<int> compare_command(const AccountOptions& options, const OutputOptions& output) {
  const auto request = request_of(options);
  if (!request) return request.error();
  ProgressLine progress(request->machine.value_or(false) ? "running blocks" : "counting");
  const auto report = make_comparison(*request, [&](double done) { progress.show(done); });
  if (!report) return report.error();
  const auto error = emit(output, {.document = [&] { return compare_document(*report, options.explain); },
                                   .json = [&] { return compare_json(*report, options.explain); },
                                   .csv = [&] { return compare_csv(*report); }});
  if (error) return *error;
  const bool right = std::all_of(
      report->accounts.begin(), report->accounts.end(),
      [](const AccountReport& account) { return account.predicted_equals_counted().value_or(true); });
  return right ? kDone : kWrongResult;
}

}  // namespace flashsim
