// --plot FILE: a plot as a file, drawn by what its name ends in.
#pragma once

#include <string>
#include <vector>

#include "app/render/plot.hpp"
#include "core/base/result.hpp"

namespace flashsim {

/// What would keep plots from being written there. Errors: an ending that is neither .svg nor .vl.json, a
/// place that can't be written to.
Outcome check_plots(const std::vector<std::string>& paths);

/// Draws the plot into every file; where one can't be written, none is.
Outcome write_plots(const std::vector<std::string>& paths, Plot plot);

}  // namespace flashsim
