// flashsim tune: the best tile of each loop order for a size of on-chip memory.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/plot_files.hpp"
#include "app/views/tune_view.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {

Result<int> tune_command(const AccountOptions& account, const TuneOptions& options,
                         const OutputOptions& output) {
  if (auto error = check_plots(options.plots)) return *error;
  const auto request = tune_request_of(account, options);
  if (!request) return request.error();
  const auto report = make_tuning(*request);
  if (!report) return report.error();
  if (auto error = write_plots(options.plots, tune_plot(*report))) return *error;
  const auto error = emit(output, {.document = [&] { return tune_document(*report); },
                                   .json = [&] { return tune_json(*report); },
                                   .csv = [&] { return tune_csv(*report); }});
  if (error) return *error;
  return kDone;
}

}  // namespace flashsim
