// Runs a rung of the ladder: once for its result, or many times for its time, its counters and its memory.
#pragma once

#include "core/problem/device.hpp"

namespace flashsim {

/// Both make a context on `device` where there is none. Throw CudaError, and Refusal.
DeviceOutputs execute_on(int device, const DeviceTask& task, const DeviceInputs& inputs);
DeviceMeasurement measure_on(int device, const DeviceTask& task, const DeviceInputs& inputs,
                             const MeasureHow& how, const DeviceProgress& progress);

/// A run that isn't attempted.
struct Refusal {
  Error error;
};

}  // namespace flashsim
