// What a run takes of the device's memory, so that one that doesn't fit is refused and not attempted.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/problem/device.hpp"

namespace flashsim {

/// Bytes of Q, K and V.
Bytes device_inputs(const Problem& problem);

/// Bytes of what a run makes: O, L, and S where the kernel stores it.
Bytes device_outputs(const DeviceTask& task);

/// Error: `need` is more than `room`.
Outcome check_room(const DeviceTask& task, Bytes need, Bytes room);

}  // namespace flashsim
