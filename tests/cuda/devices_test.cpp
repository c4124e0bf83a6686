// The GPUs that are here, held against the machine files. Skipped, and says so, where there is none.
#include <cmath>
#include <cstdio>

#include "core/problem/device_machine.hpp"
#include "cuda/backend.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::CudaDevice;
using flashsim::CudaDevices;

}  // namespace

TEST_CASE("without a device it is said why, and with one there is nothing to say") {
  const CudaDevices found = flashsim::cuda_devices();
  CHECK(found.devices.empty() == !found.missing.empty());
  if (!found.built) CHECK(found.missing == "this flashsim was built without CUDA");
}

TEST_CASE("the machine file of a GPU says what its driver says", "[.][gpu]") {
  const CudaDevices found = flashsim::cuda_devices();
  if (found.devices.empty()) {
    std::printf("skipped: %s\n", found.missing.c_str());
    return;
  }
  for (const CudaDevice& device : found.devices) {
    const auto machine =
        flashsim::machine_of_device(device.name, device.memory, flashsim::WantedRates::datasheet);
    INFO(device.name);
    if (!machine) {
      WARN("no machine file for " << device.name);
      continue;
    }
    CHECK(machine->sms == device.sms);
    CHECK(machine->shared_memory_per_sm == device.shared_memory_per_sm);
    CHECK(machine->shared_memory_per_block == device.shared_memory_per_block);
    CHECK(machine->registers_per_sm == device.registers_per_sm);
    CHECK(machine->blocks_per_sm == device.blocks_per_sm);
    CHECK(machine->l2 == device.l2);
    CHECK(std::fabs(machine->clock_hz / device.clock_hz - 1) < 0.01);
    // The driver keeps a part of the memory for itself.
    CHECK(device.memory <= machine->memory);
    CHECK(ratio(device.memory, machine->memory) > 0.97);
  }
}
