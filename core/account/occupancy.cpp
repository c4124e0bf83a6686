#include "core/account/occupancy.hpp"

#include <algorithm>
#include <array>
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

namespace {

/// The tiles of one problem, by name.
class Tiles {
 public:
  Tiles(const Problem& problem, Tiling tiling)
      : stored_(size_of(problem.storage)),
        summed_(size_of(problem.accumulation())),
        br_(tiling.query_rows),
        bc_(tiling.key_rows),
        d_(problem.head_dim) {}

  /// Rows of queries and of keys, as operands and as they are summed.
  [[nodiscard]] OnChipTile queries(const char* name) const { return {name, Bytes(br_ * d_ * stored_)}; }
  [[nodiscard]] OnChipTile keys(const char* name) const { return {name, Bytes(bc_ * d_ * stored_)}; }
  [[nodiscard]] OnChipTile query_sum(const char* name) const { return {name, Bytes(br_ * d_ * summed_)}; }
  [[nodiscard]] OnChipTile key_sum(const char* name) const { return {name, Bytes(bc_ * d_ * summed_)}; }
  /// A tile of the score matrix's shape, as an operand and as it is summed.
  [[nodiscard]] OnChipTile scores(const char* name) const { return {name, Bytes(br_ * bc_ * stored_)}; }
  [[nodiscard]] OnChipTile score_sum(const char* name) const { return {name, Bytes(br_ * bc_ * summed_)}; }
  [[nodiscard]] OnChipTile statistics(const char* names, std::int64_t number) const {
    return {names, Bytes(Count(number) * br_ * summed_)};
  }

 private:
  Count stored_, summed_, br_, bc_, d_;
};

/// A tiled algorithm has a backward kernel of that name.
bool is_backward(std::string_view kernel) {
  constexpr std::array<std::string_view, 5> kNames{"deltas", "gradients", "key_value_gradients",
                                                   "query_gradient", "conversion"};
  return std::find(kNames.begin(), kNames.end(), kernel) != kNames.end();
}

/// A backward kernel of a tiled algorithm; nothing for one that streams. P_ij and dS_ij are operands of
/// products; that for dQ alone needs dS_ij the other way round than it was computed, and so in shared memory.
Footprint flash_backward_footprint(std::string_view kernel, const Tiles& t, bool keeps_l_and_m) {
  Footprint f{.shared_memory = {t.queries("Q_i"), t.queries("dO_i"), t.keys("K_j"), t.keys("V_j")},
              .registers = {t.score_sum("S_ij"), t.scores("P_ij"), t.score_sum("dP_ij")}};
  if (kernel == "gradients") {
    f.shared_memory.push_back(t.scores("dS_ij"));
    f.registers.push_back(t.query_sum("dQ_i"));
  } else if (kernel == "key_value_gradients") {
    f.registers.push_back(t.scores("dS_ij"));
  } else if (kernel == "query_gradient") {
    f.registers.push_back(t.scores("dS_ij"));
    f.registers.push_back(t.query_sum("dQ_i"));
  } else {
    return {};
  }
  if (kernel != "query_gradient") {
    f.registers.push_back(t.key_sum("dK_j"));
    f.registers.push_back(t.key_sum("dV_j"));
  }
  f.registers.push_back(keeps_l_and_m ? t.statistics("m_i, l_i, D_i", 3) : t.statistics("L_i, D_i", 2));
  return f;
}

/// A backward kernel over whole matrices.
Footprint matrix_backward_footprint(std::string_view kernel, const Tiles& t) {
  if (kernel == "value_gradient") return {{t.scores("P_ij"), t.queries("dO_i")}, {t.key_sum("dV_j")}};
  if (kernel == "probability_gradient") return {{t.queries("dO_i"), t.keys("V_j")}, {t.score_sum("dP_ij")}};
  if (kernel == "query_gradient") return {{t.scores("dS_ij"), t.keys("K_j")}, {t.query_sum("dQ_i")}};
  if (kernel == "key_gradient") return {{t.scores("dS_ij"), t.queries("Q_i")}, {t.key_sum("dK_j")}};
  return {};
}

}  // namespace

Footprint footprint_of(Algorithm algorithm, std::string_view kernel, const Problem& problem, Tiling tiling) {
  const Count stored = size_of(problem.storage);
  const Count summed = size_of(problem.accumulation());
  if (algorithm == Algorithm::memory_efficient) {
    // Its tiles are chunks; what a block works on is a tile of a chunk's product.
    tiling.query_rows = std::min(tiling.query_rows, kProductTiles.query_rows);
    tiling.key_rows = std::min(tiling.key_rows, kProductTiles.key_rows);
  }
  const Count br = tiling.query_rows;
  const Count bc = tiling.key_rows;
  const Count d = problem.head_dim;
  if (algorithm == Algorithm::split_kv && kernel == "combine") {
    return {.shared_memory = {},
            .registers = {{"O_part", Bytes(br * d * summed)},
                          {"O_i", Bytes(br * d * summed)},
                          {"m_i, l_i", Bytes(Count(2) * br * summed)}}};
  }
  if (facts_of(algorithm).tiled && is_backward(kernel)) {
    return flash_backward_footprint(kernel, Tiles(problem, tiling), algorithm == Algorithm::flash1);
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
  return matrix_backward_footprint(kernel, Tiles(problem, tiling));
}

Occupancy occupancy_of(const KernelLaunch& launch, Footprint footprint, const Machine& machine,
                       Bytes shared_memory) {
  const Bytes reserved = machine.reserved_per_block();
  const Bytes per_sm = std::max(machine.shared_memory_per_sm, shared_memory + reserved);
  const Bytes shared = footprint.shared_total() + reserved;
  const Bytes registers = footprint.register_total();

  Occupancy occupancy{.kernel = launch.name, .blocks = launch.blocks, .launches = launch.launches};
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
  occupancy.sm_share = std::min(1.0, blocks / static_cast<double>(launch.launches.value()) / sms);
  occupancy.footprint = std::move(footprint);
  return occupancy;
}

}  // namespace flashsim
