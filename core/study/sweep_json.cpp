#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/parse.hpp"
#include "core/study/report_json.hpp"
#include "core/study/sweep.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Kind = SweepParameter::Kind;

constexpr std::string_view kSchema = "flashsim.sweep/1";

ordered_json json_of(const SweepValue& value) {
  return std::visit([](const auto& one) { return ordered_json(one); }, value);
}

ordered_json json_of(const FigureValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return nullptr;
  if (const double* number = std::get_if<double>(&value)) return number_json(*number);
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return *std::get_if<std::int64_t>(&value);
}

ordered_json point_json(const SweepReport& report, std::size_t at) {
  const SweepPoint& point = report.points[at];
  ordered_json parameters = ordered_json::object();
  for (const std::size_t p : report.swept) {
    parameters[std::string(sweep_parameters()[p].key)] = json_of(*report.value_at(at, p));
  }
  ordered_json entry{{"parameters", std::move(parameters)}};
  if (point.error) {
    entry["error"] = point.error->message;
    return entry;
  }
  entry["tile_q"] = point.tiling->query_rows;
  entry["tile_k"] = point.tiling->key_rows;
  for (std::size_t f = 0; f < point.figures.size(); ++f) {
    entry[std::string(sweep_figures()[f].name)] = json_of(point.figures[f]);
  }
  return entry;
}

/// One value of a parameter, as `path` has it.
Result<SweepValue> read_value(const SweepParameter& parameter, const json& value, const std::string& path) {
  if (parameter.numeric()) {
    const bool whole = value.is_number_integer() &&
                       !(value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{1} << 62);
    if (!whole) return Error{fmt::format("{} must be a whole number, not {}", path, short_json(value)), ""};
    const auto number = value.get<std::int64_t>();
    if (parameter.kind == Kind::dimension) {
      const auto checked = check_dimension(path, number);
      if (!checked) return checked.error();
    } else if (number < 1) {
      return Error{fmt::format("{} must be at least 1, not {}", path, number), ""};
    }
    return SweepValue(number);
  }
  if (parameter.kind == Kind::flag) {
    if (!value.is_boolean()) {
      return Error{fmt::format("{} must be true or false, not {}", path, short_json(value)), ""};
    }
    return SweepValue(value.get<bool>());
  }
  if (!is_one_line(value)) {
    return Error{fmt::format("{} must be a text of one line, not {}", path, short_json(value)), ""};
  }
  const auto known = parameter.known(value.get<std::string>());
  if (!known) return Error{path + ": " + known.error().message, known.error().hint};
  return SweepValue(*known);
}

}  // namespace

ordered_json sweep_json(const SweepReport& report) {
  ordered_json input = ordered_json::object();
  ordered_json swept = ordered_json::array();
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ordered_json values = ordered_json::array();
    for (const SweepValue& value : report.input.values[p]) values.push_back(json_of(value));
    input[std::string(parameters[p].key)] = values.empty() ? ordered_json(nullptr) : std::move(values);
  }
  for (const std::size_t p : report.swept) swept.push_back(parameters[p].key);
  ordered_json points = ordered_json::array();
  for (std::size_t at = 0; at < report.points.size(); ++at) points.push_back(point_json(report, at));
  return {{"schema", kSchema},
          {"input", std::move(input)},
          {"result", {{"swept", std::move(swept)}, {"points", std::move(points)}}}};
}

Result<SweepRequest> read_sweep_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {kSchema});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  SweepRequest request;
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::string key(parameters[p].key);
    const json* given = reader.value(key);
    if (given == nullptr) continue;
    const json list = given->is_array() ? *given : json::array({*given});
    if (list.empty()) reader.fail({fmt::format("{} must not be empty", reader.path_of(key)), ""});
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path =
          given->is_array() ? fmt::format("{}[{}]", reader.path_of(key), i) : reader.path_of(key);
      auto value = read_value(parameters[p], list[i], path);
      if (value) {
        request.values[p].push_back(std::move(value).value());
      } else {
        reader.fail(value.error());
      }
    }
  }
  if (auto error = reader.finish()) return *error;
  return request;
}

}  // namespace flashsim
