// Plots as Vega-Lite v5, with the data in the specification: https://vega.github.io/vega-lite/
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/render/plot.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

/// A number that is whole without a fraction, as JavaScript writes it.
ordered_json plain(double value) {
  constexpr double kLargestExact = 9007199254740992.0;
  if (value < kLargestExact && value == static_cast<double>(static_cast<std::int64_t>(value))) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

ordered_json axis_json(const PlotAxis& axis) {
  ordered_json scale{{"type", axis.logarithmic ? "log" : "linear"},
                     {"domain", {plain(axis.low), plain(axis.high)}},
                     {"nice", false},
                     {"zero", false}};
  if (axis.logarithmic) {
    scale["base"] = axis.unit == PlotUnit::operations || axis.unit == PlotUnit::number ? 10 : 2;
    scale.erase("zero");
  }
  ordered_json values = ordered_json::array();
  ordered_json labels = ordered_json::object();
  for (const PlotTick& tick : axis.ticks) {
    values.push_back(plain(tick.at));
    labels[plain(tick.at).dump()] = tick.label;
  }
  // An object of labels is an expression of Vega's language as it stands.
  return {{"field", axis.field},
          {"type", "quantitative"},
          {"title", axis.title},
          {"scale", std::move(scale)},
          {"axis", {{"values", std::move(values)}, {"labelExpr", labels.dump() + "[datum.value]"}}}};
}

}  // namespace

std::string render_vega_lite(const Plot& plot) {
  ordered_json values = ordered_json::array();
  ordered_json names = ordered_json::array();
  ordered_json dashes = ordered_json::array();
  for (const PlotSeries& series : plot.series) {
    names.push_back(series.name);
    dashes.push_back(series.dashed ? ordered_json{6, 4} : ordered_json{1, 0});
    for (const PlotPoint& point : series.points) {
      values.push_back({{plot.x.field, plain(point.x)},
                        {plot.y.field, point.y ? plain(*point.y) : ordered_json(nullptr)},
                        {"series", series.name}});
    }
  }
  ordered_json encoding{{"x", axis_json(plot.x)}, {"y", axis_json(plot.y)}};
  if (plot.series.size() > 1) {
    encoding["color"] = {{"field", "series"},
                         {"type", "nominal"},
                         {"title", plot.series_title},
                         {"scale", {{"domain", names}}}};
    encoding["strokeDash"] = {{"field", "series"},
                              {"type", "nominal"},
                              {"title", plot.series_title},
                              {"scale", {{"domain", names}, {"range", std::move(dashes)}}}};
  }
  return json_text({{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
                    {"title", {{"text", plot.title}, {"subtitle", plot.about}, {"anchor", "start"}}},
                    {"width", 640},
                    {"height", 360},
                    {"data", {{"values", std::move(values)}}},
                    {"mark", {{"type", "line"}, {"point", true}, {"tooltip", true}}},
                    {"encoding", std::move(encoding)}});
}

}  // namespace flashsim
