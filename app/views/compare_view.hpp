// How a comparison looks.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/compare.hpp"

namespace flashsim {

Document compare_document(const CompareReport& report, bool explain);

/// One line an algorithm.
CsvTable compare_csv(const CompareReport& report);

}  // namespace flashsim
