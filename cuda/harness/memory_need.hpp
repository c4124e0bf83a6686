// What a run takes of the device's memory, so that one that doesn't fit is refused and not attempted.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/problem/device.hpp"

namespace flashsim {

/// Bytes of Q, K and V, and of dO, O and L where the kernel is one of the backward pass.
Bytes device_inputs(const DeviceTask& task);

/// Bytes of what a run makes: O and L, S where the kernel stores it, what parts of the keys leave; backward
/// dQ, dK and dV, D, and the sum that dQ is converted from.
Bytes device_outputs(const DeviceTask& task);

/// Error: `need` is more than `room`.
Outcome check_room(const DeviceTask& task, Bytes need, Bytes room);

}  // namespace flashsim
