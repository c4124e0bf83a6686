// A line plot, apart from how it is drawn: series of points over one axis against another. SVG and Vega-Lite
// are both made from it, with the same scales, ticks and labels.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace flashsim {

/// What the numbers of an axis are, which decides its ticks: sizes have binary ones.
enum class PlotUnit { bytes, whole, operations, number };

struct PlotTick {
  double at = 0;
  std::string label;
};

struct PlotAxis {
  std::string field;  ///< its name in the data: "hbm_total_bytes"
  std::string title;
  PlotUnit unit = PlotUnit::number;
  bool logarithmic = false;
  // Set by set_scales().
  double low = 0;
  double high = 1;
  std::vector<PlotTick> ticks;
};

struct PlotPoint {
  double x = 0;
  std::optional<double> y;  ///< absent where there is no figure: the line has a gap
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
  bool dashed = false;  ///< a bound, beside what is done
};

struct Plot {
  std::string title;
  std::string about;
  PlotAxis x;
  PlotAxis y;
  std::string series_title;  ///< over the legend
  std::vector<PlotSeries> series;
};

/// Gives both axes their ends and ticks. What a logarithmic axis can't show becomes a gap.
void set_scales(Plot& plot);

/// A number as the axis labels it: 16 KiB, 131 072, 1.5 T.
std::string axis_label(PlotUnit unit, double value);

/// Whether numbers in rising order grow by a factor rather than by a step.
bool grow_by_factor(const std::vector<double>& rising);

/// Scalable vector graphics: readable on light and dark, no scripts.
std::string render_svg(const Plot& plot);

/// A Vega-Lite v5 specification with the data in it.
std::string render_vega_lite(const Plot& plot);

}  // namespace flashsim
