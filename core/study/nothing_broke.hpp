// Why a run whose switches are on can be right all the same.
#pragma once

#include <string>

#include "core/attention/magnitudes.hpp"
#include "core/study/run_plan.hpp"

namespace flashsim {

/// In one sentence, what the tensors or tiles of a right run spared; "" where nothing is switched.
std::string why_nothing_broke(const RunPlan& plan, const Magnitudes& magnitudes);

}  // namespace flashsim
