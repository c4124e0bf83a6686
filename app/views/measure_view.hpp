// How a measurement looks: for each kernel, model beside counters and clock, and a sentence for what differs.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/measure.hpp"

namespace flashsim {

/// The kernels one after another and, where there are several, side by side at the end.
Document measure_document(const MeasureReport& report);

/// One line a figure: kernel, section, item, quantity, value.
CsvTable measure_csv(const MeasureReport& report);

}  // namespace flashsim
