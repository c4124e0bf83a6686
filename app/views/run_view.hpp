// How a run looks: what went in, how far the result is from the truth, how fast it was, what it moved.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/run.hpp"

namespace flashsim {

/// `explain` adds the derivation of the tolerances.
Document run_document(const RunReport& report, bool explain);

/// One line a figure: section, item, quantity, value.
CsvTable run_csv(const RunReport& report);

}  // namespace flashsim
