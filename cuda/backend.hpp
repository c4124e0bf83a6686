// The door to CUDA. The build puts one of two files behind it: backend_cuda.cu, or backend_none.cpp
// where there is no toolkit; nobody else has to know which.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/problem/device.hpp"

namespace flashsim {

/// What the CUDA runtime says of one GPU.
struct CudaDevice {
  std::string name;
  std::string compute_capability;  ///< "9.0"
  std::int64_t sms = 0;
  Bytes memory;
  Bytes l2;
  Bytes shared_memory_per_sm;
  Bytes shared_memory_per_block;  ///< the most that a block may opt in to
  Bytes registers_per_sm;
  std::int64_t blocks_per_sm = 0;
  double clock_hz = 0;  ///< peak SM clock; 0 where the runtime doesn't tell
};

struct CudaDevices {
  bool built = false;   ///< the backend is part of this binary
  std::string driver;   ///< the newest CUDA version that the driver speaks: "13.0"; empty without a driver
  std::string missing;  ///< why there is no device, in one sentence; empty where there is one
  std::vector<CudaDevice> devices;
};

/// The GPUs that this binary can use here. Never fails: without CUDA, a driver or a device it says why
/// there is none.
CudaDevices cuda_devices();

/// The GPU of that number, on which the kernels of the ladder run. Without one, each of its functions gives
/// an error that says why.
DeviceBackend cuda_backend(int device = 0);

}  // namespace flashsim
