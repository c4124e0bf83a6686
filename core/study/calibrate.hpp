// A calibration: the rates of the GPU here as they were measured, beside those of its datasheet's machine
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/problem/device.hpp"
#include "core/problem/machine.hpp"

namespace flashsim {

struct CalibrateReport {
  DeviceFacts device;
  Machine machine;                   ///< measured
  std::optional<Machine> datasheet;  ///< absent: no machine file fits the GPU
};

/// A rate of a machine file.
struct MachineRate {
  std::string key;   ///< of the file: "flops_per_second.fp16"
  std::string unit;  ///< "B/s", "FLOP/s", "Hz", "s"; empty for what an SM does in a cycle
  std::optional<double> measured, datasheet;
  bool is_measured = false;  ///< the machine says that it was; else it was taken over

  /// measured / datasheet
  [[nodiscard]] std::optional<double> ratio() const;
};

/// Measures the rates of `device`. Errors: what it says, and a rate that no machine file can have.
Result<CalibrateReport> make_calibration(const DeviceBackend& device, const DeviceProgress& progress = {});

/// Every rate that one of the two machines has, in the file's order.
std::vector<MachineRate> rates_of(const CalibrateReport& report);

}  // namespace flashsim
