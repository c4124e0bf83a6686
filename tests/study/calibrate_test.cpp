// A calibration of a device that isn't there.
#include "core/study/calibrate.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::DeviceBackend;
using flashsim::Machine;
using flashsim::MachineRate;
using flashsim::make_calibration;
using flashsim::test::FakeDevice;
using flashsim::test::message_of;

/// A device whose calibration gives `machine`.
DeviceBackend calibrated(FakeDevice& device, const Machine& machine) {
  DeviceBackend backend = device.backend();
  backend.calibrate = [machine](const flashsim::DeviceProgress& progress) -> flashsim::Result<Machine> {
    if (progress) progress("rates", 0.5);
    return machine;
  };
  return backend;
}

Machine measured_h200() { return flashsim::find_machine("h200-measured").value(); }

}  // namespace

TEST_CASE("measured rates stand beside the datasheet's of the same GPU, each with its ratio") {
  FakeDevice device;
  const auto report = make_calibration(calibrated(device, measured_h200()));
  REQUIRE(message_of(report) == flashsim::test::kNoError);
  REQUIRE(report->datasheet.has_value());
  CHECK(report->datasheet->name == "h200");
  bool seen = false;
  for (const MachineRate& rate : rates_of(*report)) {
    if (rate.key == "flops_per_second.fp8") CHECK_FALSE(rate.ratio().has_value());
    if (rate.key != "flops_per_second.fp16") continue;
    seen = true;
    CHECK(rate.is_measured);
    CHECK(std::fabs(*rate.ratio() - 744.3 / 989) < 1e-9);
  }
  CHECK(seen);
}

TEST_CASE("a rate that wasn't measured is said to be taken over") {
  FakeDevice device;
  Machine machine = measured_h200();
  machine.measured = {"memory_bytes_per_second"};
  const auto report = make_calibration(calibrated(device, machine));
  for (const MachineRate& rate : rates_of(*report)) {
    CHECK(rate.is_measured == (rate.key == "memory_bytes_per_second"));
  }
}

TEST_CASE("a GPU without a datasheet is calibrated all the same") {
  FakeDevice device;
  device.facts.name = "Some GPU";
  const auto report = make_calibration(calibrated(device, measured_h200()));
  REQUIRE(message_of(report) == flashsim::test::kNoError);
  CHECK_FALSE(report->datasheet.has_value());
  for (const MachineRate& rate : rates_of(*report)) CHECK_FALSE(rate.ratio().has_value());
}

TEST_CASE("rates that no machine file can have are an error") {
  FakeDevice device;
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Machine machine = measured_h200();
    machine.memory_bandwidth = {wrong};
    CHECK(message_of(make_calibration(calibrated(device, machine)))
              .starts_with("memory_bytes_per_second came"));
    machine = measured_h200();
    machine.flops_per_second.fp32 = wrong;
    CHECK(
        message_of(make_calibration(calibrated(device, machine))).starts_with("flops_per_second.fp32 came"));
  }
  device.no_device = flashsim::Error{"no GPU", ""};
  CHECK(message_of(make_calibration(calibrated(device, measured_h200()))) == "no GPU");
}
