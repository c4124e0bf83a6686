// A kernel executed on a device, with its result as tensors.
#pragma once

#include <vector>

#include "core/attention/tensors.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/device.hpp"

namespace flashsim {

struct DeviceExecution {
  Outputs<float> outputs;
  std::vector<KernelResources> kernels;
  Seconds seconds;  ///< of this one execution
};

/// Executes `task` on `inputs`, which have the shapes of its problem. Errors: what the device says, and a
/// result that isn't of the problem's shape.
Result<DeviceExecution> execute_on(const DeviceBackend& device, const DeviceTask& task,
                                   const Inputs<float>& inputs);

}  // namespace flashsim
