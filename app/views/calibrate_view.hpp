// How a calibration looks: each rate as it was measured, beside the datasheet's.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/calibrate.hpp"

namespace flashsim {

Document calibrate_document(const CalibrateReport& report);

/// One line a rate.
CsvTable calibrate_csv(const CalibrateReport& report);

}  // namespace flashsim
