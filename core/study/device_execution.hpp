// A kernel executed on a device, with its result as tensors.
#pragma once

#include <optional>
#include <vector>

#include "core/attention/tensors.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/device.hpp"

namespace flashsim {

struct DeviceExecution {
  Outputs<float> outputs;                     ///< of a kernel of the backward pass: what it was given
  std::optional<Gradients<float>> gradients;  ///< of a kernel of the backward pass
  std::vector<KernelResources> kernels;
  Seconds seconds;  ///< of this one execution
};

/// Executes `task` on tensors that have the shapes of its problem; dO: [B, H, N, d] for a kernel of the
/// backward pass, else empty. Errors: what the device says, and a result that isn't of the problem's shape.
Result<DeviceExecution> execute_on(const DeviceBackend& device, const DeviceTask& task,
                                   const Inputs<float>& inputs, const Tensor4<float>& d_o = {});

/// The tensors as a device takes them, which must outlive what is made of them here.
DeviceInputs device_inputs_of(const Inputs<float>& inputs, const Tensor4<float>& d_o = {});

}  // namespace flashsim
