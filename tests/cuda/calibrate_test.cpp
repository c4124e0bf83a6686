// The GPU that is here, measured. Skipped, and says so, where there is none.
#include <cstdio>

#include "cuda/backend.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("a calibration measures what a chip can do, and nothing that it can't", "[.][gpu]") {
  const CudaDevices found = cuda_devices();
  if (found.devices.empty()) {
    std::printf("skipped: %s\n", found.missing.c_str());
    return;
  }
  double last = -1;
  const auto calibrated = cuda_backend().calibrate([&](std::string_view, double done) {
    CHECK(done > last);
    CHECK(done < 1);
    last = done;
  });
  REQUIRE(calibrated.ok());
  const Machine& machine = *calibrated;
  const CudaDevice& device = found.devices.front();
  CHECK(machine.sms == device.sms);
  if (device.clock_hz > 0) CHECK(machine.clock_hz < 1.02 * device.clock_hz);
  CHECK(machine.clock_hz > 3e8);
  // 32 banks of 4 bytes, and no chip has more. A kernel whose loads the compiler dropped shows up here.
  CHECK(machine.shared_memory_bytes_per_sm_per_clock < 129);
  CHECK(machine.shared_memory_bytes_per_sm_per_clock > 32);
  CHECK(machine.exponentials_per_sm_per_clock.value() < 65);
  CHECK(machine.exponentials_per_sm_per_clock.value() > 3);
  const double fp32_lanes =
      machine.flops_per_second.fp32.value() / 2 / machine.clock_hz / static_cast<double>(machine.sms);
  CHECK(fp32_lanes < 129);
  CHECK(fp32_lanes > 48);
  CHECK(machine.l2_bandwidth.value().value > machine.memory_bandwidth.value);
  CHECK(machine.launch_seconds > 1e-7);
  CHECK(machine.launch_seconds < 1e-4);
}

}  // namespace
}  // namespace flashsim
