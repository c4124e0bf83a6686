// flashsim replay: a scenario step by step.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/option_parser.hpp"
#include "app/render/text.hpp"
#include "app/terminal.hpp"
#include "app/views/replay_view.hpp"
#include "core/base/file.hpp"
#include "core/study/replay.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

Result<ReplayRequest> request_of(const ReplayOptions& options) {
  ReplayRequest request{.scenario = options.scenario,
                        .no_subtract_max = options.no_subtract_max,
                        .no_rescale = options.no_rescale};
  if (options.algo) {
    const auto algorithm = algorithm_named(*options.algo);
    if (!algorithm) return algorithm.error();
    if (!facts_of(*algorithm).online) {
      return Error{fmt::format("--algo must be a tiled algorithm with an online softmax here, not '{}'",
                               *options.algo),
                   "flash1 or flash2; the standard way is shown beside it anyway"};
    }
    request.algorithm = *algorithm;
  }
  OptionParser parser;
  parser.whole("--row", options.row, 0, kLargestDimension, request.row);
  parser.dimension("--tile-q", options.tile_q, request.tiles.query_rows);
  parser.dimension("--tile-k", options.tile_k, request.tiles.key_rows);
  parser.finite("--magnitude", options.magnitude, request.magnitude);
  parser.parse(options.compute, request.compute, compute_type_named);
  if (parser.error()) return *parser.error();
  return request;
}

Result<ReplayReport> report_of(const ReplayOptions& options) {
  const auto request = request_of(options);
  if (!request) return request.error();
  if (!options.input) {
    if (options.scenario.empty()) {
      return Error{"replay needs a scenario: a name or a file", "flashsim list scenarios"};
    }
    return make_replay(*request);
  }
  if (!options.scenario.empty()) {
    return Error{fmt::format("replay takes a scenario or --input, not both: '{}' and '{}'", options.scenario,
                             *options.input),
                 ""};
  }
  const auto text = read_file(*options.input);
  if (!text) return text.error();
  return repeat_replay(*text, fmt::format("'{}'", *options.input), *request);
}

/// Page after page, with a key between.
void show_stepwise(const ReplayReport& report) {
  bool first = true;
  for (const Document& page : replay_pages(report)) {
    if (!first) {
      std::fputs("\n", stdout);
      std::fflush(stdout);
      if (is_terminal(stdin)) std::fputs("(any key continues, q stops)", stderr);
      const bool on = wait_for_key();
      if (is_terminal(stdin)) std::fputs("\r\x1b[K", stderr);
      if (!on) return;
    }
    first = false;
    std::fputs(render_text(page, colour_wanted(), terminal_width()).c_str(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace

Result<int> replay_command(const ReplayOptions& options, const OutputOptions& output) {
  if (options.step && (output.format != "table" || output.file)) {
    return Error{"--step shows a replay on the terminal, and can't be had with --format or --out", ""};
  }
  const auto report = report_of(options);
  if (!report) return report.error();
  const int status = report->verdict == Verdict::wrong ? kWrongResult : kDone;
  if (options.step) {
    show_stepwise(*report);
    return status;
  }
  const auto document = [&] {
    Document all;
    for (Document& page : replay_pages(*report)) {
      for (Block& block : page) all.push_back(std::move(block));
    }
    return all;
  };
  const auto error = emit(output, {.document = document,
                                   .json = [&] { return replay_json(*report); },
                                   .csv = [&] { return replay_csv(*report); }});
  if (error) return *error;
  return status;
}

}  // namespace flashsim
