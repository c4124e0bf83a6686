// The machine file of a GPU, told by what its driver says.
#include "core/problem/device_machine.hpp"

#include <cstdint>
#include <string>

#include "tests/catch.hpp"

namespace {

using flashsim::Bytes;
using flashsim::Machine;
using flashsim::machine_of_device;
using flashsim::WantedRates;

std::string name_of_machine(const std::string& device, double gib,
                            WantedRates wanted = WantedRates::measured_first) {
  const auto machine =
      machine_of_device(device, Bytes(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024)), wanted);
  return machine ? machine->name : "none";
}

}  // namespace

TEST_CASE("a GPU's machine file is told by its name, whatever words stand around it") {
  CHECK(name_of_machine("NVIDIA H100 80GB HBM3", 79.1) == "h100");
  CHECK(name_of_machine("NVIDIA GeForce RTX 4090", 23.6) == "rtx-4090");
  CHECK(name_of_machine("NVIDIA L4", 22.0) == "l4");
  CHECK(name_of_machine("NVIDIA L40S", 44.4) == "l40s");
  CHECK(name_of_machine("Tesla T4", 14.6) == "t4");
  CHECK(name_of_machine("NVIDIA A100-SXM4-80GB", 79.2) == "a100");
  CHECK(name_of_machine("NVIDIA A100-SXM4-40GB", 39.4) == "a100-40");
}

TEST_CASE("the measured machine goes before the datasheet's unless that is asked for") {
  CHECK(name_of_machine("NVIDIA H200", 139.8) == "h200-measured");
  CHECK(name_of_machine("NVIDIA H200", 139.8, WantedRates::datasheet) == "h200");
}

TEST_CASE("another part of a chip's name, or of its memory, is no machine of it") {
  CHECK(name_of_machine("NVIDIA L40", 44.4) == "none");
  CHECK(name_of_machine("NVIDIA GeForce RTX 4090 Laptop GPU", 15.6) == "none");
  CHECK(name_of_machine("NVIDIA H200", 70) == "none");
  CHECK(name_of_machine("", 80) == "none");
}
