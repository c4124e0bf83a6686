// The CUDA backend's door: everything thrown inside cuda/ ends here.
#include "cuda/backend.hpp"

#include <new>
#include <utility>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "cuda/check.hpp"
#include "cuda/driver_facts.hpp"
#include "cuda/harness/harness.hpp"
#include "cuda/ladder/launch.hpp"
#include "cuda/library/cublas.hpp"
#include "cuda/rates/rates.hpp"

namespace flashsim {
namespace {

std::int64_t attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

/// "13.0" of 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

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

DeviceFacts facts_on(int device) {
  cuda_check(cudaSetDevice(device), "cudaSetDevice");
  const CudaDevice described = describe(device);
  int version = 0;
  cuda_check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  std::size_t free = 0;
  std::size_t all = 0;
  cuda_check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return {.name = described.name,
          .compute_capability = described.compute_capability,
          .driver = DriverFacts(device).version(),
          .runtime = version_text(version),
          .memory = described.memory,
          .free_memory = Bytes(static_cast<std::int64_t>(free))};
}

/// Whatever `work` throws becomes an error, unless there is no such device in the first place.
template <class Work>
auto answered(int device, Work work) -> Result<decltype(work())> {
  const CudaDevices found = cuda_devices();
  if (found.devices.empty()) return Error{"there is no GPU to run on: " + found.missing, "run it on the CPU"};
  const auto count = static_cast<int>(found.devices.size());
  if (device < 0 || device >= count) {
    return Error{fmt::format("there is no GPU {}", device),
                 fmt::format("choose one from 0 to {}", count - 1)};
  }
  try {
    return work();
  } catch (const Refusal& refusal) {
    return refusal.error;
  } catch (const CudaError& error) {
    return Error{error.what(), error.code() == cudaErrorMemoryAllocation ? "take a smaller problem" : ""};
  } catch (const BlockTooLarge& block) {
    return Error{block.what(), "take a smaller head dimension, or a kernel that keeps less on the chip"};
  } catch (const CublasMissing& missing) {
    return Error{missing.what(), missing.remedy()};
  } catch (const std::bad_alloc&) {
    return Error{"this machine's memory isn't enough for the tensors", "take a smaller problem"};
  } catch (const std::runtime_error& error) {
    return Error{error.what(), ""};
  }
}

}  // namespace

DeviceBackend cuda_backend(int device) {
  return {.facts = [=] { return answered(device, [&] { return facts_on(device); }); },
          .execute =
              [=](const DeviceTask& task, const DeviceInputs& inputs) {
                return answered(device, [&] { return execute_on(device, task, inputs); });
              },
          .measure =
              [=](const DeviceTask& task, const DeviceInputs& inputs, const MeasureHow& how,
                  const DeviceProgress& progress) {
                return answered(device, [&] { return measure_on(device, task, inputs, how, progress); });
              },
          .calibrate =
              [=](const DeviceProgress& progress) {
                return answered(device, [&] { return calibrate_on(device, progress); });
              }};
}

CudaDevices cuda_devices() {
  CudaDevices found{.built = true};
  try {
    int version = 0;
    cuda_check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    if (version == 0) {
      found.missing = "no NVIDIA driver is loaded";
      return found;
    }
    found.driver = version_text(version);
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
