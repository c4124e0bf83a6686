// The output product of 01, which 02 takes where V holds what its library can't leave out.
#pragma once

#include "cuda/ladder/rung.hpp"

namespace flashsim {

/// Launches O = P V; P: [B, H, N, Nkv] in the storage type. Where `wanted` (on the device) is given, it does
/// nothing unless that is set by then. Throws CudaError.
void launch_output(const RungArguments& args, const void* p, const int* wanted = nullptr);

/// Throws CudaError.
KernelResources output_resources(const DeviceTask& task);

}  // namespace flashsim
