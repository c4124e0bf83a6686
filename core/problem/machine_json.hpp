// A machine as the data file that find_machine() reads.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/problem/machine.hpp"

namespace flashsim {

/// "flashsim.machine/1". Rates that the file has as whole numbers are rounded to one.
nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace flashsim
