// How a sweep looks, in words and as a plot.
#pragma once

#include <optional>
#include <string>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "app/render/plot.hpp"
#include "core/base/result.hpp"
#include "core/study/sweep.hpp"

namespace flashsim {

/// One line a point.
Document sweep_document(const SweepReport& report);

/// One line a point: the swept parameters, the tiles, every figure, and why there is none.
CsvTable sweep_csv(const SweepReport& report);

/// What is drawn, as it was asked for; what is absent is chosen.
struct PlotChoice {
  std::optional<std::string> x, y, series;
};

/// A figure over a parameter, one line for each combination of the others. Chosen are the swept number with
/// the most values, HBM traffic, and all the others; a parameter that isn't among the series stays at its
/// first value. Errors: nothing to draw over, unknown names, more lines than can be told apart.
Result<Plot> sweep_plot(const SweepReport& report, const PlotChoice& choice);

/// A value as people read it: 16 KiB, 131 072, fp16.
std::string shown(const SweepParameter& parameter, const SweepValue& value);

/// The parameters of a sweep that have one value, in words.
std::string fixed_text(const SweepReport& report);

/// "N × SRAM": what is swept, over what the first column of a table names otherwise.
std::string swept_text(const SweepReport& report);

}  // namespace flashsim
