// How a tuning looks, in words and as a plot.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "app/render/plot.hpp"
#include "core/study/tune.hpp"

namespace flashsim {

Document tune_document(const TuneReport& report);

/// One line a tile, and one for each bound.
CsvTable tune_csv(const TuneReport& report);

/// HBM bytes over the size of SRAM: what each order moves with its best tile, what standard attention moves,
/// the compulsory bytes and the theory's order.
Plot tune_plot(const TuneReport& report);

}  // namespace flashsim
