#include "core/problem/machine_json.hpp"

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

namespace flashsim {
namespace {

using nlohmann::ordered_json;

std::int64_t whole(double value) { return std::llround(value); }

/// A whole number where it is one, so that it reads as one.
ordered_json number(double value) {
  constexpr double kLargest = 9e15;
  if (std::fabs(value) < kLargest && value == std::round(value)) return whole(value);
  return value;
}

ordered_json rate(const std::optional<double>& value) {
  return value ? ordered_json(whole(*value)) : ordered_json(nullptr);
}

}  // namespace

ordered_json machine_json(const Machine& m) {
  const auto& rates = m.flops_per_second;
  return {
      {"schema", "flashsim.machine/1"},
      {"name", m.name},
      {"aliases", m.aliases},
      {"title", m.title},
      {"vendor", m.vendor},
      {"memory_bytes", m.memory.value()},
      {"memory_bytes_per_second", whole(m.memory_bandwidth.value)},
      {"l2_bytes", m.l2.value()},
      {"l2_partitions", m.l2_partitions},
      {"l2_bytes_per_second", m.l2_bandwidth ? rate(m.l2_bandwidth->value) : ordered_json(nullptr)},
      {"sms", m.sms},
      {"shared_memory_per_sm_bytes", m.shared_memory_per_sm.value()},
      {"shared_memory_per_block_bytes", m.shared_memory_per_block.value()},
      {"registers_per_sm_bytes", m.registers_per_sm.value()},
      {"blocks_per_sm", m.blocks_per_sm},
      {"clock_hz", whole(m.clock_hz)},
      {"shared_memory_bytes_per_sm_per_clock", number(m.shared_memory_bytes_per_sm_per_clock)},
      {"launch_seconds", m.launch_seconds},
      {"exponentials_per_sm_per_clock",
       m.exponentials_per_sm_per_clock ? number(*m.exponentials_per_sm_per_clock) : ordered_json(nullptr)},
      {"flops_per_second",
       {{"fp64", rate(rates.fp64)},
        {"fp32", rate(rates.fp32)},
        {"tf32", rate(rates.tf32)},
        {"fp16", rate(rates.fp16)},
        {"bf16", rate(rates.bf16)},
        {"fp8", rate(rates.fp8)}}},
      {"fragment_flops_per_second",
       {{"fp16", rate(m.fragment_flops_per_second.fp16)}, {"bf16", rate(m.fragment_flops_per_second.bf16)}}},
      {"rates", m.rates},
      {"uncertain", m.uncertain},
      {"measured", m.measured},
      {"notes", m.notes},
      {"source", m.source}};
}

}  // namespace flashsim
