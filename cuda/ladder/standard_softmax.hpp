// The softmax of 01 and 02: which of its kernels for which rows and switches.
#pragma once

#include "cuda/ladder/rung.hpp"

namespace flashsim {

/// Launches P = softmax(mask(S)) in place on S: [B, H, N, Nkv] in the storage type, and writes L. Throws
/// CudaError.
void launch_softmax(const RungArguments& args, void* scores);

/// Throws CudaError.
KernelResources softmax_resources(const DeviceTask& task);

}  // namespace flashsim
