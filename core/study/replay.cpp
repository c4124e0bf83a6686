#include "core/study/replay.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/attention/attend.hpp"
#include "core/base/json_reader.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kMostScores = std::int64_t{1} << 21;
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 23;

Error too_large(const Scenario& scenario, const char* advice) {
  return {fmt::format("{} is too large to replay step by step ({}, tiles {})", scenario.source,
                      shape_text(scenario.problem), tiling_text(scenario.tiling)),
          advice};
}

template <class T>
Result<Recording> record(Algorithm algorithm, const Scenario& scenario, const Inputs<T>& inputs,
                         std::optional<std::int64_t> row, const Truth& truth, const Tolerance& tolerance) {
  Recorder recorder(scenario.problem, row, kMostNumbers);
  const Outputs<T> outputs = attend<T>(algorithm, scenario.problem, scenario.tiling, scenario.switches,
                                       inputs, {.observer = &recorder});
  if (recorder.overflowed()) {
    return too_large(scenario, "make the sequence shorter or the tiles larger, or replay one row with --row");
  }
  Recording recording{.algorithm = algorithm, .frames = recorder.take_frames()};
  recording.output_error = compare(outputs.o, truth.outputs.o, tolerance.output.value());
  recording.lse_error = compare(outputs.lse, truth.outputs.lse, tolerance.lse.value());
  recording.outputs.o = converted_tensor<double>(outputs.o);
  recording.outputs.lse = converted_tensor<double>(outputs.lse);
  return recording;
}

template <class T>
Outcome play(ReplayReport& report, Algorithm algorithm, const Inputs<double>& given) {
  // The truth is that of the inputs as T holds them: rounding them is no error of the algorithm.
  const Scenario& scenario = report.scenario;
  const Inputs<T> inputs = converted<T>(given);
  report.truth = truth_of(scenario.problem, inputs);
  report.tolerance = tolerance_of<T>(algorithm, scenario.problem, scenario.tiling, report.truth.magnitudes,
                                     given.scores_given());
  auto standard =
      record<T>(Algorithm::standard, scenario, inputs, report.row, report.truth, report.tolerance);
  if (!standard) return standard.error();
  report.standard = std::move(standard).value();
  auto tiled = record<T>(algorithm, scenario, inputs, report.row, report.truth, report.tolerance);
  if (!tiled) return tiled.error();
  report.tiled = std::move(tiled).value();
  return std::nullopt;
}

/// Lays the request's changes over the scenario. Errors: a row or a magnitude that can't be.
Outcome apply(const ReplayRequest& request, ReplayReport& report) {
  Scenario& scenario = report.scenario;
  scenario.tiling.query_rows = request.tiles.query_rows.value_or(scenario.tiling.query_rows);
  scenario.tiling.key_rows = request.tiles.key_rows.value_or(scenario.tiling.key_rows);
  if (request.magnitude) scenario.set_magnitude(*request.magnitude);
  if (request.no_subtract_max) scenario.switches.subtract_max = false;
  if (request.no_rescale) scenario.switches.rescale = false;
  report.compute = request.compute.value_or(scenario.problem.storage);
  scenario.problem.storage = report.compute;
  report.row = request.row;
  const std::int64_t last = scenario.problem.seq - 1;
  if (report.row && (*report.row < 0 || *report.row > last)) {
    return Error{fmt::format("--row must be a whole number from 0 to {}, not {}", last, *report.row), ""};
  }
  return std::nullopt;
}

Result<ReplayReport> replay_of(Scenario scenario, const ReplayRequest& request) {
  const Algorithm asked = request.algorithm.value_or(Algorithm::flash2);
  if (asked == Algorithm::split_kv || asked == Algorithm::block_sparse) {
    return Error{fmt::format("{} can't be replayed step by step", facts_of(asked).name), "flash1 or flash2"};
  }
  ReplayReport report{.scenario = std::move(scenario)};
  if (auto error = apply(request, report)) return *error;
  const Problem& p = report.scenario.problem;
  if (Count(p.batch) * p.heads * p.seq * p.kv_seq > Count(kMostScores)) {
    return too_large(report.scenario, "make the sequence shorter");
  }
  const Inputs<double> inputs = report.scenario.tensors();
  const Algorithm algorithm = request.algorithm.value_or(Algorithm::flash2);
  const auto error = report.compute == NumberType::fp64 ? play<double>(report, algorithm, inputs)
                                                        : play<float>(report, algorithm, inputs);
  if (error) return *error;
  report.verdict = verdict_of(report.standard.agrees() && report.tiled.agrees(),
                              report.tolerance.output_says_nothing(), report.scenario.switches.broken());
  return report;
}

}  // namespace

Result<ReplayReport> make_replay(const ReplayRequest& request) {
  auto scenario = find_scenario(request.scenario);
  if (!scenario) return scenario.error();
  return replay_of(std::move(scenario).value(), request);
}

Result<ReplayReport> repeat_replay(std::string_view text, const std::string& source,
                                   const ReplayRequest& over) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {"flashsim.replay/1"});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  ReplayRequest request = over;
  if (const auto name = reader.text("algorithm"); name && !request.algorithm) {
    const auto algorithm = algorithm_named(*name);
    if (!algorithm) {
      reader.fail({fmt::format("{}: {}", reader.path_of("algorithm"), algorithm.error().message),
                   algorithm.error().hint});
    } else if (!facts_of(*algorithm).online) {
      reader.fail({fmt::format("{} must be a tiled algorithm with an online softmax, not \"{}\"",
                               reader.path_of("algorithm"), *name),
                   ""});
    } else {
      request.algorithm = *algorithm;
    }
  }
  if (const auto name = reader.text("compute"); name && !request.compute) {
    if (*name != "fp32" && *name != "fp64") {
      reader.fail(
          {fmt::format("{} must be \"fp32\" or \"fp64\", not \"{}\"", reader.path_of("compute"), *name), ""});
    }
    request.compute = number_type_named(*name);
  }
  if (const auto row = reader.integer("row"); row && !request.row) request.row = row;
  const nlohmann::json* object = reader.object("scenario");
  if (object == nullptr) reader.fail({fmt::format("{} is missing", reader.path_of("scenario")), ""});
  if (auto error = reader.finish()) return *error;
  auto scenario = scenario_from_json(*object, reader.path_of("scenario"));
  if (!scenario) return scenario.error();
  return replay_of(std::move(scenario).value(), request);
}

}  // namespace flashsim
