#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/study/report_json.hpp"
#include "core/study/tensor_json.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

ordered_json matrix_json(const NumberMatrix& matrix) {
  ordered_json rows = ordered_json::array();
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    ordered_json row = ordered_json::array();
    for (std::int64_t c = 0; c < matrix.columns; ++c) row.push_back(number_json(matrix.at(r, c)));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// One number a row.
ordered_json column_json(const NumberMatrix& matrix) {
  ordered_json rows = ordered_json::array();
  for (const double number : matrix.numbers) rows.push_back(number_json(number));
  return rows;
}

bool is_column(ChipValue value) { return value >= ChipValue::m_before; }
bool moves(Operation operation) {
  return operation == Operation::load || operation == Operation::store || operation == Operation::initialise;
}

ordered_json frame_json(const Frame& frame, std::size_t index) {
  const Step& step = frame.step;
  ordered_json json{{"index", index}, {"operation", name_of(step.operation)}};
  if (moves(step.operation)) json["tensor"] = name_of(step.operand);
  json["batch"] = frame.batch;
  json["head"] = frame.head;
  json["query_tile"] = step.query_tile >= 0 ? ordered_json(step.query_tile) : ordered_json(nullptr);
  json["key_tile"] = step.key_tile >= 0 ? ordered_json(step.key_tile) : ordered_json(nullptr);
  json["rows"] = {step.rows.begin, step.rows.end};
  json["keys"] = {step.keys.begin, step.keys.end};
  if (step.operation == Operation::mask) json["idle"] = step.idle;
  json["hbm_read_bytes"] = frame.hbm_read.value();
  json["hbm_write_bytes"] = frame.hbm_written.value();
  json["values"] = ordered_json::object();
  for (const auto& [name, matrix] : frame.values) {
    json["values"][std::string(name_of(name))] = is_column(name) ? column_json(matrix) : matrix_json(matrix);
  }
  return json;
}

ordered_json frames_json(const std::vector<Frame>& frames) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < frames.size(); ++i) list.push_back(frame_json(frames[i], i));
  return list;
}

ordered_json recording_json(const Recording& recording) {
  return {{"algorithm", facts_of(recording.algorithm).name},
          {"output", tensor_json(recording.outputs.o)},
          {"lse", lse_json(recording.outputs.lse)},
          {"error",
           {{"output_max_abs", number_json(recording.output_error.max_abs.size)},
            {"output_at", place_json(recording.output_error.max_abs.element.at)},
            {"lse_max_abs", number_json(recording.lse_error.max_abs.size)},
            {"lse_at", place_json(recording.lse_error.max_abs.element.at)}}},
          {"frames", frames_json(recording.frames)}};
}

}  // namespace

ordered_json replay_json(const ReplayReport& r) {
  ordered_json input{{"algorithm", facts_of(r.tiled.algorithm).name}, {"compute", name_of(r.compute)}};
  input["row"] = r.row ? ordered_json(*r.row) : ordered_json(nullptr);
  input["scenario"] = scenario_json(r.scenario);
  ordered_json result = recording_json(r.tiled);
  result["standard"] = recording_json(r.standard);
  result["truth"] = {{"output", tensor_json(r.truth.outputs.o)}, {"lse", lse_json(r.truth.outputs.lse)}};
  result["tolerance"] = {{"output", number_json(r.tolerance.output.value())},
                         {"lse", number_json(r.tolerance.lse.value())},
                         {"epsilon", r.tolerance.epsilon},
                         {"largest_score", r.tolerance.magnitudes.score},
                         {"largest_value", r.tolerance.magnitudes.value}};
  result["verdict"] = name_of(r.verdict);
  return {{"schema", "flashsim.replay/1"}, {"input", std::move(input)}, {"result", std::move(result)}};
}

}  // namespace flashsim
