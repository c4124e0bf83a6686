// The CUDA backend's door: everything thrown inside cuda/ ends here.
#include "cuda/backend.hpp"

#include "cuda/check.hpp"

namespace flashsim {
namespace {

std::int64_t attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

CudaDevice describe(int device) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  constexpr std::int64_t kBytesPerRegister = 4;
  return {.name = properties.name,
          .compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor),
          .sms = properties.multiProcessorCount,
          .memory = Bytes(static_cast<std::int64_t>(properties.totalGlobalMem)),
          .l2 = Bytes(std::int64_t{properties.l2CacheSize}),
          .shared_memory_per_sm = Bytes(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device)),
          .shared_memory_per_block = Bytes(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device)),
          .registers_per_sm =
              Bytes(kBytesPerRegister * attribute(cudaDevAttrMaxRegistersPerMultiprocessor, device)),
          .blocks_per_sm = attribute(cudaDevAttrMaxBlocksPerMultiprocessor, device),
          .clock_hz = 1000.0 * static_cast<double>(attribute(cudaDevAttrClockRate, device))};
}

}  // namespace

CudaDevices cuda_devices() {
  CudaDevices found{.built = true};
  try {
    int version = 0;
    cuda_check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    if (version == 0) {
      found.missing = "no NVIDIA driver is loaded";
      return found;
    }
    found.driver = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    int count = 0;
    cuda_check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    for (int device = 0; device < count; ++device) found.devices.push_back(describe(device));
    if (count == 0) found.missing = "the driver shows no GPU";
  } catch (const CudaError& error) {
    found.devices.clear();
    found.missing = error.what();
  }
  return found;
}

}  // namespace flashsim
