// The stub: a build without the CUDA toolkit.
#include "cuda/backend.hpp"

namespace flashsim {
namespace {

constexpr const char* kMissing = "this flashsim was built without CUDA";

Error missing() { return {kMissing, "build where nvcc is found, and run where there is an NVIDIA GPU"}; }

}  // namespace

CudaDevices cuda_devices() { return {.missing = kMissing}; }

DeviceBackend cuda_backend(int) {
  return {.facts = []() -> Result<DeviceFacts> { return missing(); },
          .execute = [](const auto&, const auto&) -> Result<DeviceOutputs> { return missing(); },
          .measure = [](const auto&, const auto&, const auto&, const auto&) -> Result<DeviceMeasurement> {
            return missing();
          },
          .calibrate = [](const auto&) -> Result<Machine> { return missing(); }};
}

}  // namespace flashsim
