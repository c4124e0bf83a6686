// The machine's own rates: what one GPU does in a second of each thing that the time model asks for, as a
// machine file's content.
#pragma once

#include "core/problem/device.hpp"
#include "core/problem/machine.hpp"

namespace flashsim {

/// Measures the device of that number, in a few seconds, and tells `progress` (which may be empty) each
/// phase. Makes the device the current one. Throws CudaError, for a number without a device too.
Machine calibrate_on(int device, const DeviceProgress& progress);

}  // namespace flashsim
