// Plots as SVG. Colours of the paper, the text and the grid follow what the reader prefers; those of the
// lines can be told apart on both, also by the colour-blind (Okabe and Ito's, without their yellow).
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "app/render/plot.hpp"
#include "app/render/text.hpp"

namespace flashsim {
namespace {

constexpr double kDrawnWidth = 620;
constexpr double kLeft = 88;
constexpr double kRight = 24;
constexpr double kLegendBeside = 60;     // its lines and what is blank around its names
constexpr double kCharacterWidth = 7.2;  // of the widest fonts in use
constexpr double kTop = 72;
constexpr double kBottom = 60;
constexpr double kDrawnHeight = 360;
constexpr double kLegendLine = 19;
constexpr std::size_t kMostMarks = 600;

constexpr std::array<std::string_view, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                   "#E69F00", "#56B4E9", "#8C7BD1"};
/// Lines beyond the colours are dashed, each round of them in its own way.
constexpr std::array<std::string_view, 4> kDashes{"", "7 4", "2 4", "9 3 2 3"};

constexpr std::string_view kStyle =
    "text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:12px;fill:#1f2328}"
    ".paper{fill:#ffffff}.title{font-size:16px;font-weight:600}.faint{fill:#59636e}"
    ".grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#59636e;stroke-width:1}"
    "path{fill:none;stroke-width:2;stroke-linejoin:round}"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.faint{fill:#9198a1}"
    ".grid{stroke:#30363d}.axis{stroke:#9198a1}}";

/// Text as XML holds it. Control characters, which XML can't hold, become blanks.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
  return out;
}

class SvgRenderer {
 public:
  explicit SvgRenderer(const Plot& plot)
      : plot_(plot),
        right_(kLeft + kDrawnWidth),
        bottom_(kTop + std::max(kDrawnHeight, kLegendLine * static_cast<double>(plot.series.size() + 1))) {}

  std::string render() {
    const double height = bottom_ + kBottom;
    const double width = right_ + (has_legend() ? legend_width() : kRight);
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n"
        "<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n",
        std::ceil(width), height, escaped(plot_.title), escaped(plot_.about), kStyle);
    text(kLeft, 28, "start", plot_.title, "title");
    text(kLeft, 48, "start", plot_.about, "faint");
    axes();
    std::size_t marks = 0;
    for (const PlotSeries& series : plot_.series) marks += series.points.size();
    for (std::size_t s = 0; s < plot_.series.size(); ++s) line(s, marks <= kMostMarks);
    if (has_legend()) legend();
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] bool has_legend() const {
    return plot_.series.size() > 1 || (plot_.series.size() == 1 && !plot_.series.front().name.empty());
  }

  [[nodiscard]] double legend_width() const {
    std::size_t longest = width_of(plot_.series_title);
    for (const PlotSeries& series : plot_.series) longest = std::max(longest, width_of(series.name));
    return kLegendBeside + kCharacterWidth * static_cast<double>(longest);
  }

  /// Where `value` stands between the ends of an axis, from 0 to 1.
  static double share(const PlotAxis& axis, double value) {
    if (axis.high == axis.low) return 0.5;
    return axis.logarithmic ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                            : (value - axis.low) / (axis.high - axis.low);
  }
  [[nodiscard]] double across(double x) const { return kLeft + share(plot_.x, x) * (right_ - kLeft); }
  [[nodiscard]] double up(double y) const { return bottom_ - share(plot_.y, y) * (bottom_ - kTop); }

  void text(double x, double y, std::string_view anchor, const std::string& what, std::string_view style = "",
            const std::string& turned = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}{}>{}</text>\n", x, y, anchor,
                        style.empty() ? "" : fmt::format(" class=\"{}\"", style), turned, escaped(what));
  }

  void rule(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                        style, x1, y1, x2, y2);
  }

  void axes() {
    for (const PlotTick& tick : plot_.x.ticks) {
      rule(across(tick.at), kTop, across(tick.at), bottom_, "grid");
      text(across(tick.at), bottom_ + 18, "middle", tick.label, "faint");
    }
    for (const PlotTick& tick : plot_.y.ticks) {
      rule(kLeft, up(tick.at), right_, up(tick.at), "grid");
      text(kLeft - 8, up(tick.at) + 4, "end", tick.label, "faint");
    }
    rule(kLeft, bottom_, right_, bottom_, "axis");
    rule(kLeft, kTop, kLeft, bottom_, "axis");
    text((kLeft + right_) / 2, bottom_ + 42, "middle", plot_.x.title);
    const double middle = (kTop + bottom_) / 2;
    text(18, middle, "middle", plot_.y.title, "",
         fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", middle));
  }

  [[nodiscard]] std::string stroke(std::size_t s) const {
    const std::size_t round = s / kColours.size() + (plot_.series[s].dashed ? 1 : 0);
    const std::string_view dashes = kDashes[round % kDashes.size()];
    return fmt::format("stroke=\"{}\"{}", kColours[s % kColours.size()],
                       dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
  }

  void line(std::size_t s, bool marked) {
    const PlotSeries& series = plot_.series[s];
    std::string path;
    bool drawing = false;
    for (const PlotPoint& point : series.points) {
      if (point.y) path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", across(point.x), up(*point.y));
      drawing = point.y.has_value();
    }
    if (!path.empty()) out_ += fmt::format("<path d=\"{}\" {}/>\n", path, stroke(s));
    if (!marked || series.dashed) return;
    for (const PlotPoint& point : series.points) {
      if (!point.y) continue;
      out_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>\n",
          across(point.x), up(*point.y), kColours[s % kColours.size()],
          escaped(fmt::format("{}{}{}: {}", series.name, series.name.empty() ? "" : ", ",
                              axis_label(plot_.x.unit, point.x), axis_label(plot_.y.unit, *point.y))));
    }
  }

  void legend() {
    const double x = right_ + 20;
    double y = kTop + 6;
    if (!plot_.series_title.empty()) {
      text(x, y, "start", plot_.series_title, "faint");
      y += kLegendLine;
    }
    for (std::size_t s = 0; s < plot_.series.size(); ++s) {
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}h22\" {}/>\n", x, y - 4, stroke(s));
      text(x + 30, y, "start", plot_.series[s].name);
      y += kLegendLine;
    }
  }

  const Plot& plot_;
  double right_;
  double bottom_;
  std::string out_;
};

}  // namespace

std::string render_svg(const Plot& plot) { return SvgRenderer(plot).render(); }

}  // namespace flashsim
