#include "app/views/sweep_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

using Kind = SweepParameter::Kind;

/// Where the columns of tables come from.
std::int64_t number(const SweepPoint& point, std::string_view figure) {
  return std::get<std::int64_t>(point.figures[sweep_figure_named(figure).value()]);
}
std::string size(const SweepPoint& point, std::string_view figure) {
  return size_text(Bytes(number(point, figure)));
}
std::string three(const SweepPoint& point, std::string_view figure, double times = 1) {
  const double* value = std::get_if<double>(&point.figures[sweep_figure_named(figure).value()]);
  return value == nullptr ? "–" : three_digits(times * *value);
}

/// The parameters that have a column of their own. Tiles stand in every line as they were chosen.
std::vector<std::size_t> columns_of(const SweepReport& report) {
  std::vector<std::size_t> columns;
  for (const std::size_t p : report.swept) {
    const auto key = sweep_parameters()[p].key;
    if (key != "tile_q" && key != "tile_k") columns.push_back(p);
  }
  if (columns.empty()) columns.push_back(0);
  return columns;
}

/// Tiles that were asked for, where there is no account: "64×?".
std::string asked_tiles(const SweepReport& report, std::size_t at) {
  const SweepValue* rows = report.value_at(at, *sweep_parameter_named("tile_q"));
  const SweepValue* keys = report.value_at(at, *sweep_parameter_named("tile_k"));
  if (rows == nullptr && keys == nullptr) return "–";
  return fmt::format("{}×{}", rows == nullptr ? "?" : value_text(*rows),
                     keys == nullptr ? "?" : value_text(*keys));
}

std::string csv_cell(const FigureValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return "";
}

std::string csv_cell(const SweepValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return value_text(value);
}

}  // namespace

std::string shown(const SweepParameter& parameter, const SweepValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return axis_label(parameter.kind == Kind::bytes ? PlotUnit::bytes : PlotUnit::whole,
                      static_cast<double>(*number));
  }
  return value_text(value);
}

std::string fixed_text(const SweepReport& report) {
  std::vector<std::string> numbers;
  std::vector<std::string> names;
  std::string gpu;
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto& values = report.input.values[p];
    if (values.size() != 1) continue;
    const SweepParameter& parameter = parameters[p];
    if (parameter.key == "algorithm" || parameter.key == "pass") continue;
    if (parameter.numeric()) {
      const bool size = parameter.kind == Kind::bytes;
      numbers.push_back(fmt::format("{} {}", parameter.title,
                                    size ? shown(parameter, values.front()) : value_text(values.front())));
    } else if (parameter.kind == Kind::flag) {
      names.emplace_back(values.front() == SweepValue(true) ? "causal" : "not causal");
    } else if (parameter.key == "gpu") {
      const auto machine = find_machine(value_text(values.front()));
      gpu = machine ? machine->title : value_text(values.front());
    } else if (values.front() != parameter.otherwise || parameter.key != "causal_alignment") {
      names.push_back(value_text(values.front()));
    }
  }
  numbers.insert(numbers.end(), names.begin(), names.end());
  if (!gpu.empty()) numbers.push_back(gpu);
  return fmt::format("{}", fmt::join(numbers, " · "));
}

std::string swept_text(const SweepReport& report) {
  std::vector<std::string_view> titles;
  for (const std::size_t p : report.swept) titles.push_back(sweep_parameters()[p].title);
  return titles.empty() ? "one point" : fmt::format("{}", fmt::join(titles, " × "));
}

/// ", forward", which the title says; "" where the pass is swept.
std::string pass_of(const SweepReport& report) {
  const auto pass = sweep_parameter_named("pass");
  const auto& values = report.input.values[*pass];
  if (values.size() > 1) return "";
  return ", " + (values.empty() ? std::string(name_of(Pass::forward)) : value_text(values.front()));
}

Document sweep_document(const SweepReport& report) {
  const auto columns = columns_of(report);
  const auto& algorithms = report.input.values[0];
  const std::string what =
      algorithms.size() == 1 ? std::string(facts_of(algorithm_named(value_text(algorithms[0])).value()).title)
                             : "Attention";
  TableBlock table{.heading = std::string(sweep_parameters()[columns.front()].title)};
  for (std::size_t c = 1; c < columns.size(); ++c) {
    table.columns.emplace_back(sweep_parameters()[columns[c]].title);
  }
  for (const char* title : {"tiles", "HBM read", "written", "total", "of standard", "peak allocated",
                            "exact FLOP/B", "fits the GPU"}) {
    table.columns.emplace_back(title);
  }
  table.left = {table.columns.size()};
  for (std::size_t at = 0; at < report.points.size(); ++at) {
    const SweepPoint& point = report.points[at];
    std::vector<std::string> row;
    for (const std::size_t p : columns) row.push_back(shown(sweep_parameters()[p], *report.value_at(at, p)));
    if (point.error) {
      row.push_back(asked_tiles(report, at));
      row.insert(row.end(), 6, "–");
      row.push_back(point.error->message);
    } else {
      const bool fits = std::get<bool>(point.figures[sweep_figure_named("fits_memory").value()]);
      const std::string of_standard = three(point, "hbm_of_standard", 100);
      row.insert(
          row.end(),
          {tiling_text(*point.tiling), size(point, "hbm_read_bytes"), size(point, "hbm_write_bytes"),
           size(point, "hbm_total_bytes"), of_standard == "–" ? of_standard : of_standard + " %",
           size(point, "peak_allocated_bytes"), three(point, "flops_per_hbm_byte"), fits ? "yes" : "no"});
    }
    table.rows.push_back(std::move(row));
  }
  Document document;
  document.emplace_back(
      Title{fmt::format("{}{}, over {}", what, pass_of(report), swept_text(report)), fixed_text(report)});
  document.emplace_back(std::move(table));
  const std::string errors =
      report.errors() > 0 ? fmt::format(", {} of them impossible", grouped(report.errors())) : "";
  document.emplace_back(VerdictLine{
      Tone::neutral, fmt::format("{} points{}, from the closed forms",
                                 grouped(static_cast<std::int64_t>(report.points.size())), errors)});
  return document;
}

CsvTable sweep_csv(const SweepReport& report) {
  const auto columns = columns_of(report);
  CsvTable table;
  for (const std::size_t p : columns) table.header.emplace_back(sweep_parameters()[p].key);
  table.header.insert(table.header.end(), {"tile_q", "tile_k"});
  for (const SweepFigure& figure : sweep_figures()) table.header.emplace_back(figure.name);
  table.header.emplace_back("error");
  const auto tile = [&](std::size_t at, std::string_view key) -> std::string {
    const SweepValue* asked = report.value_at(at, *sweep_parameter_named(key));
    return asked == nullptr ? "" : value_text(*asked);
  };
  for (std::size_t at = 0; at < report.points.size(); ++at) {
    const SweepPoint& point = report.points[at];
    std::vector<std::string> row;
    for (const std::size_t p : columns) row.push_back(csv_cell(*report.value_at(at, p)));
    row.push_back(point.tiling ? fmt::format("{}", point.tiling->query_rows) : tile(at, "tile_q"));
    row.push_back(point.tiling ? fmt::format("{}", point.tiling->key_rows) : tile(at, "tile_k"));
    for (const FigureValue& value : point.figures) row.push_back(csv_cell(value));
    if (point.error) row.insert(row.end(), sweep_figures().size(), "");
    row.push_back(point.error ? point.error->message : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace flashsim
