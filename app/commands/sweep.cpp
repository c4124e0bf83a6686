// flashsim sweep: the account over ranges of any parameter.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/plot_files.hpp"
#include "app/terminal.hpp"
#include "app/views/sweep_view.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

Outcome draw(const SweepReport& report, const PlotOptions& options) {
  if (options.files.empty()) return std::nullopt;
  const auto plot = sweep_plot(report, {options.x, options.y, options.series});
  if (!plot) return plot.error();
  return write_plots(options.files, *plot);
}

}  // namespace

Result<int> sweep_command(const AccountOptions& account, const SweepOptions& options,
                          const OutputOptions& output) {
  if (auto error = check_plots(options.plot.files)) return *error;
  if (options.plot.files.empty() && (options.plot.x || options.plot.y || options.plot.series)) {
    return Error{"--x, --y and --series say what --plot draws, and there is no --plot", ""};
  }
  const auto request = sweep_request_of(account, options);
  if (!request) return request.error();
  ProgressLine progress("sweeping");
  const auto report = make_sweep(*request, [&](double done) { progress.show(done); });
  if (!report) return report.error();
  if (auto error = draw(*report, options.plot)) return *error;
  const auto error = emit(output, {.document = [&] { return sweep_document(*report); },
                                   .json = [&] { return sweep_json(*report); },
                                   .csv = [&] { return sweep_csv(*report); }});
  if (error) return *error;
  return kDone;
}

}  // namespace flashsim
