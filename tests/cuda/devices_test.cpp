// The GPUs that are here, held against the machine files. Skipped, and says so, where there is none.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "core/problem/machine.hpp"
#include "cuda/backend.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::CudaDevice;
using flashsim::CudaDevices;
using flashsim::Machine;

/// "h200" is told from "NVIDIA H200", and of two parts of one name the one of nearest memory.
std::optional<Machine> machine_of(const CudaDevice& device) {
  std::string name = device.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::replace(name.begin(), name.end(), ' ', '-');
  std::optional<Machine> nearest;
  const auto distance = [&](const Machine& m) {
    return std::fabs(static_cast<double>(m.memory.value() - device.memory.value()));
  };
  for (const Machine& machine : flashsim::built_in_machines()) {
    const std::string family = machine.name == "a100-40" ? "a100" : machine.name;
    if (name.find(family) == std::string::npos) continue;
    if (!nearest || distance(machine) < distance(*nearest)) nearest = machine;
  }
  return nearest;
}

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
    const auto machine = machine_of(device);
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
