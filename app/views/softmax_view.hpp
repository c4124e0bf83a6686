// How the ways to compute a softmax look, side by side.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/softmax.hpp"

namespace flashsim {

Document softmax_document(const SoftmaxReport& report);

/// One line a way.
CsvTable softmax_csv(const SoftmaxReport& report);

}  // namespace flashsim
