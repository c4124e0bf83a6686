// Where an axis begins and ends, and what stands at it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "app/render/plot.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

constexpr double kMostTicks = 8;
constexpr std::size_t kMostValuesAsTicks = 10;

void add_tick(PlotAxis& axis, double at) { axis.ticks.push_back({at, axis_label(axis.unit, at)}); }

/// The largest of 1, 2 and 5 times a power of ten that is at most `value`.
double nice_below(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {5.0, 2.0}) {
    if (step * power <= value * (1 + 1e-12)) return step * power;
  }
  return power;
}

/// The next of 1, 2, 5, 10, 20 … behind one of them.
double nice_behind(double nice) {
  const double power = std::pow(10, std::floor(std::log10(nice) + 1e-9));
  const double digit = std::round(nice / power);
  return digit == 1 ? 2 * power : digit == 2 ? 5 * power : 10 * power;
}

/// Powers of `base` around `low` and `high`, with so few ticks that they can be read.
void set_powers(PlotAxis& axis, double base, double low, double high) {
  const auto exponent = [&](double value) { return std::log(value) / std::log(base); };
  double first = std::floor(exponent(low) + 1e-9);
  double last = std::ceil(exponent(high) - 1e-9);
  if (last <= first) last = first + 1;
  const double step = std::ceil((last - first) / kMostTicks);
  first = std::floor(first / step) * step;
  last = std::ceil(last / step) * step;
  axis.low = std::pow(base, first);
  axis.high = std::pow(base, last);
  for (double e = first; e <= last; e += step) add_tick(axis, std::pow(base, e));
}

void set_logarithmic(PlotAxis& axis, double low, double high) {
  if (axis.unit == PlotUnit::bytes) return set_powers(axis, 2, low, high);
  if (high / low >= 1000) return set_powers(axis, 10, low, high);
  axis.low = nice_below(low);
  double tick = axis.low;
  add_tick(axis, tick);
  while (axis.ticks.size() < 2 || tick < high * (1 - 1e-12)) add_tick(axis, tick = nice_behind(tick));
  axis.high = tick;
}

/// A step that takes at most kMostTicks from 0 to `range`.
double linear_step(PlotUnit unit, double range) {
  const double least = range / kMostTicks;
  if (unit == PlotUnit::bytes) return std::max(1.0, std::exp2(std::ceil(std::log2(least) - 1e-9)));
  double step = nice_below(least);
  if (step < least * (1 - 1e-12)) step = nice_behind(step);
  return unit == PlotUnit::whole ? std::max(step, 1.0) : step;
}

void set_linear(PlotAxis& axis, double low, double high) {
  const double step = linear_step(axis.unit, high - low);
  axis.low = low;
  axis.high = high;
  for (double n = std::ceil(low / step - 1e-9); n * step <= high * (1 + 1e-12); ++n) add_tick(axis, n * step);
}

/// The horizontal axis ends where its values do, and where they are few each has a tick.
void set_horizontal(PlotAxis& axis, const std::vector<double>& values) {
  axis.low = values.front();
  axis.high = values.back();
  if (values.size() == 1) {
    add_tick(axis, axis.low);
  } else if (axis.logarithmic && values.size() > 4 * kMostValuesAsTicks) {
    PlotAxis around = axis;
    set_logarithmic(around, axis.low, axis.high);
    for (const PlotTick& tick : around.ticks) {
      if (tick.at >= axis.low && tick.at <= axis.high) axis.ticks.push_back(tick);
    }
  } else if (axis.logarithmic) {
    const std::size_t every = (values.size() - 1) / kMostValuesAsTicks + 1;
    for (std::size_t i = 0; i < values.size(); i += every) add_tick(axis, values[i]);
  } else {
    set_linear(axis, axis.low, axis.high);
  }
}

}  // namespace

std::string axis_label(PlotUnit unit, double value) {
  constexpr double kLargestWhole = 9.2e18;
  if (value >= kLargestWhole && unit == PlotUnit::bytes)
    return fmt::format("{:.3g} EiB", std::ldexp(value, -60));
  if (value >= kLargestWhole || unit == PlotUnit::number) return fmt::format("{:.4g}", value);
  const auto whole = static_cast<std::int64_t>(std::llround(value));
  if (unit == PlotUnit::whole) return grouped(whole);
  if (unit == PlotUnit::operations) {
    std::string text = decimal_text(whole);
    // 2.00 G is 2 G at an axis.
    const std::size_t point = text.find('.');
    if (point == std::string::npos) return text;
    const std::size_t end = text.find(' ');
    const std::size_t digit = text.find_last_not_of('0', end - 1);
    return text.erase(digit == point ? point : digit + 1, end - (digit == point ? point : digit + 1));
  }
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t u = 0;
  std::int64_t rest = whole;
  while (rest != 0 && rest % 1024 == 0 && u + 1 < kUnits.size()) {
    rest /= 1024;
    ++u;
  }
  return rest < 10'000 ? fmt::format("{} {}", rest, kUnits[u]) : size_text(Bytes(whole));
}

bool grow_by_factor(const std::vector<double>& rising) {
  if (rising.size() < 3 || rising.front() <= 0) return false;
  double least_ratio = std::numeric_limits<double>::infinity();
  double most_ratio = 0;
  double least_step = least_ratio;
  double most_step = 0;
  for (std::size_t i = 1; i < rising.size(); ++i) {
    const double factor = rising[i] / rising[i - 1];
    const double step = rising[i] - rising[i - 1];
    least_ratio = std::min(least_ratio, factor);
    most_ratio = std::max(most_ratio, factor);
    least_step = std::min(least_step, step);
    most_step = std::max(most_step, step);
  }
  return most_ratio / least_ratio < most_step / least_step;
}

void set_scales(Plot& plot) {
  std::vector<double> across;
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (PlotSeries& series : plot.series) {
    for (PlotPoint& point : series.points) {
      across.push_back(point.x);
      if (point.y && (!std::isfinite(*point.y) || (plot.y.logarithmic && *point.y <= 0))) point.y.reset();
      if (!point.y) continue;
      low = std::min(low, *point.y);
      high = std::max(high, *point.y);
    }
  }
  std::sort(across.begin(), across.end());
  across.erase(std::unique(across.begin(), across.end()), across.end());
  plot.x.ticks.clear();
  plot.y.ticks.clear();
  if (!across.empty()) set_horizontal(plot.x, across);
  if (high == 0) {
    plot.y.logarithmic = false;
    set_linear(plot.y, 0, 1);
  } else if (plot.y.logarithmic) {
    set_logarithmic(plot.y, low, high);
  } else {
    const double step = linear_step(plot.y.unit, high);
    set_linear(plot.y, 0, std::ceil(high / step - 1e-9) * step);
  }
}

}  // namespace flashsim
