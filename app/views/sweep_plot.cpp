#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/sweep_view.hpp"
#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

using Unit = SweepFigure::Unit;

/// More lines than these can't be told apart.
constexpr std::size_t kMostSeries = 24;
constexpr std::size_t kUsualFigure = 2;  // hbm_total_bytes

std::vector<std::string> keys_of(const std::vector<std::size_t>& parameters) {
  std::vector<std::string> keys;
  for (const std::size_t p : parameters) keys.emplace_back(sweep_parameters()[p].key);
  return keys;
}

/// A swept parameter by name. `option` is what errors call it.
Result<std::size_t> swept_named(const SweepReport& report, std::string_view option, const std::string& name) {
  const auto parameter = sweep_parameter_named(name);
  if (!parameter) return unknown_name("parameter", name, keys_of(report.swept));
  if (std::find(report.swept.begin(), report.swept.end(), *parameter) == report.swept.end()) {
    return Error{fmt::format("{} names {}, which isn't swept", option, name),
                 report.swept.empty() ? "give several values to what is to be drawn: --seq 512:131072:x2"
                                      : fmt::format("swept: {}", fmt::join(keys_of(report.swept), ", "))};
  }
  return *parameter;
}

Result<std::size_t> across(const SweepReport& report, const PlotChoice& choice) {
  if (choice.x) {
    auto chosen = swept_named(report, "--x", *choice.x);
    if (!chosen) return chosen;
    if (!sweep_parameters()[*chosen].numeric()) {
      return Error{fmt::format("--x must be a number, and {} isn't one", *choice.x), ""};
    }
    return chosen;
  }
  std::optional<std::size_t> longest;
  for (const std::size_t p : report.swept) {
    const auto& values = report.input.values;
    if (!sweep_parameters()[p].numeric()) continue;
    if (!longest || values[p].size() > values[*longest].size()) longest = p;
  }
  if (longest) return *longest;
  return Error{"nothing to plot over: no number is swept",
               "give several values to one, as in --seq 512:131072:x2"};
}

Result<std::vector<std::size_t>> lines(const SweepReport& report, const PlotChoice& choice, std::size_t x) {
  std::vector<std::size_t> parameters;
  if (choice.series && *choice.series == "none") return parameters;
  if (choice.series) {
    const auto names = parse_sweep_names("--series", *choice.series);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto parameter = swept_named(report, "--series", name);
      if (!parameter) return parameter.error();
      if (*parameter == x) return Error{fmt::format("{} can't be both --x and --series", name), ""};
      parameters.push_back(*parameter);
    }
    std::sort(parameters.begin(), parameters.end());
    return parameters;
  }
  for (const std::size_t p : report.swept) {
    if (p != x) parameters.push_back(p);
  }
  return parameters;
}

/// A line's name: what its parameters are.
std::string line_name(const SweepReport& report, const std::vector<std::size_t>& parameters, std::size_t at) {
  std::vector<std::string> parts;
  for (const std::size_t p : parameters) {
    const SweepParameter& parameter = sweep_parameters()[p];
    const SweepValue& value = *report.value_at(at, p);
    if (parameter.kind == SweepParameter::Kind::flag) {
      parts.emplace_back(value == SweepValue(true) ? "causal" : "not causal");
    } else if (parameter.numeric()) {
      parts.push_back(fmt::format("{} {}", parameter.title, shown(parameter, value)));
    } else {
      parts.push_back(value_text(value));
    }
  }
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::optional<double> number_of(const FigureValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

PlotUnit unit_of(const SweepFigure& figure) {
  return figure.unit == Unit::bytes        ? PlotUnit::bytes
         : figure.unit == Unit::operations ? PlotUnit::operations
                                           : PlotUnit::number;
}

/// "N, query length" as an axis names it.
std::string axis_title(const SweepParameter& parameter) {
  return parameter.kind == SweepParameter::Kind::bytes
             ? "shared memory of a block"
             : fmt::format("{} ({})", parameter.title, parameter.option.substr(2));
}

}  // namespace

Result<Plot> sweep_plot(const SweepReport& report, const PlotChoice& choice) {
  std::size_t figure_at = kUsualFigure;
  if (choice.y) {
    const auto named = sweep_figure_named(*choice.y);
    if (!named) return named.error();
    figure_at = *named;
  }
  const SweepFigure& figure = sweep_figures()[figure_at];
  if (figure.unit == Unit::flag) {
    return Error{fmt::format("--y must be a number, and {} is yes or no", figure.name), ""};
  }
  const auto x = across(report, choice);
  if (!x) return x.error();
  const auto by = lines(report, choice, *x);
  if (!by) return by.error();
  const SweepParameter& parameter = sweep_parameters()[*x];

  // What is neither drawn over nor told apart stays at its first value.
  std::vector<std::size_t> held;
  for (const std::size_t p : report.swept) {
    if (p != *x && std::find(by->begin(), by->end(), p) == by->end()) held.push_back(p);
  }
  const auto drawn = [&](std::size_t at) {
    return std::all_of(held.begin(), held.end(), [&](std::size_t p) {
      return *report.value_at(at, p) == report.input.values[p].front();
    });
  };

  Plot plot{.title = fmt::format("{} over {}", figure.title, parameter.title), .about = fixed_text(report)};
  std::map<std::string, std::size_t> places;
  for (std::size_t at = 0; at < report.points.size(); ++at) {
    if (!drawn(at)) continue;
    const std::string name = line_name(report, *by, at);
    const auto place = places.emplace(name, plot.series.size()).first->second;
    if (place == plot.series.size()) plot.series.push_back({.name = name});
    const SweepPoint& point = report.points[at];
    const double where = static_cast<double>(std::get<std::int64_t>(*report.value_at(at, *x)));
    plot.series[place].points.push_back(
        {where, point.error ? std::nullopt : number_of(point.figures[figure_at])});
  }
  if (plot.series.size() > kMostSeries) {
    return Error{
        fmt::format("{} lines can't be told apart: at most {} are drawn", plot.series.size(), kMostSeries),
        "name fewer parameters with --series; the others stay at their first value"};
  }
  std::vector<double> values;
  for (PlotSeries& series : plot.series) {
    std::sort(series.points.begin(), series.points.end(),
              [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  }
  for (const PlotPoint& point : plot.series.front().points) values.push_back(point.x);
  const bool logarithmic = grow_by_factor(values);
  const bool bytes = parameter.kind == SweepParameter::Kind::bytes;
  plot.x = {.field = std::string(parameter.key),
            .title = axis_title(parameter),
            .unit = bytes ? PlotUnit::bytes : PlotUnit::whole,
            .logarithmic = logarithmic};
  plot.y = {.field = std::string(figure.name),
            .title = std::string(figure.title),
            .unit = unit_of(figure),
            .logarithmic = logarithmic};
  std::vector<std::string_view> titles;
  for (const std::size_t p : *by) titles.push_back(sweep_parameters()[p].title);
  plot.series_title = fmt::format("{}", fmt::join(titles, " · "));
  if (!held.empty())
    plot.about += fmt::format("{}{}", plot.about.empty() ? "" : " · ", line_name(report, held, 0));
  const auto& algorithms = report.input.values[0];
  if (algorithms.size() == 1) plot.title = fmt::format("{}: {}", value_text(algorithms[0]), plot.title);
  return plot;
}

}  // namespace flashsim
