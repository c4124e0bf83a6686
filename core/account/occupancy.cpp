#include "core/account/occupancy.hpp"

#include <algorithm>
#include <utility>

namespace flashsim {
namespace {

Bytes sum(const std::vector<OnChipTile>& tiles) {
  Bytes total;
  for (const OnChipTile& tile : tiles) total += tile.size;
  return total;
}

}  // namespace

Bytes Footprint::shared_total() const { return sum(shared_memory); }
Bytes Footprint::register_total() const { return sum(registers); }

Footprint footprint_of(Algorithm algorithm, std::string_view kernel, const Problem& problem, Tiling tiling) {
  const Count stored = size_of(problem.storage);
  const Count summed = size_of(problem.accumulation());
  const Count br = tiling.query_rows;
  const Count bc = tiling.key_rows;
  const Count d = problem.head_dim;
  if (kernel == "combine") {
    return {.shared_memory = {},
            .registers = {{"O_part", Bytes(br * d * summed)},
                          {"O_i", Bytes(br * d * summed)},
                          {"m_i, l_i", Bytes(Count(2) * br * summed)}}};
  }
  if (facts_of(algorithm).tiled) {
    return {.shared_memory = {{"Q_i", Bytes(br * d * stored)},
                              {"K_j", Bytes(bc * d * stored)},
                              {"V_j", Bytes(bc * d * stored)}},
            .registers = {{"S_ij", Bytes(br * bc * summed)},
                          {"P_ij", Bytes(br * bc * stored)},
                          {"O_i", Bytes(br * d * summed)},
                          {"m_i, l_i", Bytes(Count(2) * br * summed)}}};
  }
  if (kernel == "scores") {
    return {.shared_memory = {{"Q_i", Bytes(br * d * stored)}, {"K_j", Bytes(bc * d * stored)}},
            .registers = {{"S_ij", Bytes(br * bc * summed)}}};
  }
  if (kernel == "output") {
    return {.shared_memory = {{"P_ij", Bytes(br * bc * stored)}, {"V_j", Bytes(bc * d * stored)}},
            .registers = {{"O_i", Bytes(br * d * summed)}}};
  }
  return {};
}

Occupancy occupancy_of(const KernelLaunch& launch, Footprint footprint, const Machine& machine,
                       Bytes shared_memory) {
  const Bytes reserved = machine.reserved_per_block();
  const Bytes per_sm = std::max(machine.shared_memory_per_sm, shared_memory + reserved);
  const Bytes shared = footprint.shared_total() + reserved;
  const Bytes registers = footprint.register_total();

  Occupancy occupancy{.kernel = launch.name, .blocks = launch.blocks};
  occupancy.blocks_per_sm = machine.blocks_per_sm;
  const auto limit = [&](Bytes available, Bytes needed) {
    if (needed == Bytes()) return;
    const std::int64_t room = needed.overflowed() ? 0 : available.value() / needed.value();
    occupancy.blocks_per_sm = std::clamp<std::int64_t>(room, 1, occupancy.blocks_per_sm);
  };
  limit(per_sm, shared);
  limit(machine.registers_per_sm, registers);
  occupancy.registers_overflow = registers > machine.registers_per_sm;
  const double blocks = static_cast<double>(launch.blocks.value());
  const double sms = static_cast<double>(machine.sms);
  occupancy.waves = blocks / (sms * static_cast<double>(occupancy.blocks_per_sm));
  occupancy.sm_share = std::min(1.0, blocks / sms);
  occupancy.footprint = std::move(footprint);
  return occupancy;
}

}  // namespace flashsim
