// The machine file of a GPU that is here, told by the name and the memory that its driver gives.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.hpp"
#include "core/problem/machine.hpp"

namespace flashsim {

/// Which of a GPU's machine files is wanted.
enum class WantedRates {
  measured_first,  ///< the measured one, or the datasheet's where there is none
  datasheet,
};

/// "h200" is told from "NVIDIA H200". Of two parts of one name it is the one of nearest memory, and a part
/// whose memory is more than a tenth off is another part.
std::optional<Machine> machine_of_device(const std::string& name, Bytes memory,
                                         WantedRates wanted = WantedRates::measured_first);

}  // namespace flashsim
