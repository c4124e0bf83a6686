#include "core/study/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/problem/device_machine.hpp"

namespace flashsim {
namespace {

/// A rate as it is read off a machine.
struct Rate {
  const char* key;
  const char* unit;
  std::optional<double> (*of)(const Machine&);
};

constexpr std::array kRates{
    Rate{"memory_bytes_per_second", "B/s",
         [](const Machine& m) { return std::optional(m.memory_bandwidth.value); }},
    Rate{"l2_bytes_per_second", "B/s",
         [](const Machine& m) {
           return m.l2_bandwidth ? std::optional(m.l2_bandwidth->value) : std::nullopt;
         }},
    Rate{"clock_hz", "Hz", [](const Machine& m) { return std::optional(m.clock_hz); }},
    Rate{"shared_memory_bytes_per_sm_per_clock", "",
         [](const Machine& m) { return std::optional(m.shared_memory_bytes_per_sm_per_clock); }},
    Rate{"launch_seconds", "s", [](const Machine& m) { return std::optional(m.launch_seconds); }},
    Rate{"exponentials_per_sm_per_clock", "",
         [](const Machine& m) { return m.exponentials_per_sm_per_clock; }},
    Rate{"flops_per_second.fp64", "FLOP/s", [](const Machine& m) { return m.flops_per_second.fp64; }},
    Rate{"flops_per_second.fp32", "FLOP/s", [](const Machine& m) { return m.flops_per_second.fp32; }},
    Rate{"flops_per_second.tf32", "FLOP/s", [](const Machine& m) { return m.flops_per_second.tf32; }},
    Rate{"flops_per_second.fp16", "FLOP/s", [](const Machine& m) { return m.flops_per_second.fp16; }},
    Rate{"flops_per_second.bf16", "FLOP/s", [](const Machine& m) { return m.flops_per_second.bf16; }},
    Rate{"flops_per_second.fp8", "FLOP/s", [](const Machine& m) { return m.flops_per_second.fp8; }},
    Rate{"fragment_flops_per_second.fp16", "FLOP/s",
         [](const Machine& m) { return m.fragment_flops_per_second.fp16; }},
    Rate{"fragment_flops_per_second.bf16", "FLOP/s",
         [](const Machine& m) { return m.fragment_flops_per_second.bf16; }}};

/// What a reader of the file would refuse.
Outcome check_rates(const Machine& machine) {
  for (const Rate& rate : kRates) {
    const auto value = rate.of(machine);
    if (!value || (std::isfinite(*value) && *value > 0)) continue;
    return Error{fmt::format("{} came out as {}, and a machine's is above 0", rate.key, *value), ""};
  }
  return std::nullopt;
}

bool says_measured(const Machine& machine, const std::string& key) {
  const auto named = [&](const std::string& name) { return name == key || key.starts_with(name + "."); };
  return std::any_of(machine.measured.begin(), machine.measured.end(), named);
}

}  // namespace

std::optional<double> MachineRate::ratio() const {
  if (!measured || !datasheet || *datasheet == 0) return std::nullopt;
  return *measured / *datasheet;
}

Result<CalibrateReport> make_calibration(const DeviceBackend& device, const DeviceProgress& progress) {
  CalibrateReport report;
  auto facts = device.facts();
  if (!facts) return facts.error();
  report.device = std::move(facts).value();
  auto machine = device.calibrate(progress);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();
  if (auto error = check_rates(report.machine)) return *error;
  report.datasheet = machine_of_device(report.device.name, report.device.memory, WantedRates::datasheet);
  return report;
}

std::vector<MachineRate> rates_of(const CalibrateReport& report) {
  std::vector<MachineRate> rates;
  for (const Rate& rate : kRates) {
    MachineRate found{.key = rate.key,
                      .unit = rate.unit,
                      .measured = rate.of(report.machine),
                      .datasheet = report.datasheet ? rate.of(*report.datasheet) : std::nullopt,
                      .is_measured = says_measured(report.machine, rate.key)};
    if (found.measured || found.datasheet) rates.push_back(std::move(found));
  }
  return rates;
}

}  // namespace flashsim
