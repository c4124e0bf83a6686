// What the driver tells of a GPU through its own library, NVML, that the CUDA runtime doesn't: its version
// and the clocks of this moment.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace flashsim {

/// Opened once for a device, so that asking takes microseconds: clocks fall as soon as work ends. Nothing
/// here fails; what the driver doesn't tell is absent.
class DriverFacts {
 public:
  /// `device` is CUDA's number; NVML's may differ, and so the two are matched by their place on the bus.
  explicit DriverFacts(int device);
  ~DriverFacts();
  DriverFacts(const DriverFacts&) = delete;
  DriverFacts& operator=(const DriverFacts&) = delete;

  /// "580.159.04"; empty where nobody tells.
  [[nodiscard]] std::string version() const;
  [[nodiscard]] std::optional<double> sm_clock_hz() const;
  [[nodiscard]] std::optional<double> memory_clock_hz() const;

 private:
  class Nvml;
  std::unique_ptr<Nvml> nvml_;  ///< null where there is none
};

}  // namespace flashsim
