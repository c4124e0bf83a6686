#include "core/account/blocks.hpp"

#include <algorithm>
#include <utility>

#include "core/account/ledger.hpp"
#include "core/schedule/tile_grid.hpp"

namespace flashsim {
namespace {

/// Beats that are kept at most; blocks beyond are recorded anew.
constexpr std::int64_t kMostBeats = 4'000'000;

Work difference(const Work& after, const Work& before) {
  return {.products = after.products - before.products,
          .scale = after.scale - before.scale,
          .mask = after.mask - before.mask,
          .softmax = after.softmax - before.softmax,
          .rescale = after.rescale - before.rescale,
          .normalise = after.normalise - before.normalise,
          .exponentials = after.exponentials - before.exponentials};
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Bytes that warps load from shared memory for a product of fragments, and store there for it. A tile pair
/// is cut into the warps' rows and keys, and all of it is computed, whatever of it is valid. Of the product's
/// operands one has the warp's own rows or keys and stays in its registers (P, dS; Q where the kernel keeps
/// it); the other is loaded by each warp whose result it has a part in. Where the warps that made P or dS
/// aren't those that multiply it, it passes through shared memory.
double fragment_bytes(const Step& step, const Problem& problem, Tiling tiling, const Fragments& fragments) {
  const auto row = static_cast<double>(problem.head_dim * size_of(problem.storage));
  const std::int64_t by_rows = ceil_div(tiling.query_rows, fragments.warp_rows);
  const std::int64_t by_keys = ceil_div(tiling.key_rows, fragments.warp_keys.value_or(tiling.key_rows));
  const double queries = static_cast<double>(tiling.query_rows) * row;
  const double keys = static_cast<double>(tiling.key_rows) * row;
  const double passed_on = 2 * static_cast<double>(tiling.query_rows * tiling.key_rows) *
                           static_cast<double>(size_of(problem.storage));
  switch (step.operation) {
    case Operation::scores:
    case Operation::probability_gradient:
      return keys * static_cast<double>(by_rows) +
             (fragments.queries_in_registers ? 0 : queries * static_cast<double>(by_keys));
    case Operation::accumulate: return keys * static_cast<double>(by_rows);
    case Operation::value_gradient:
    case Operation::key_gradient:
      return queries * static_cast<double>(by_keys) + (by_rows > 1 ? passed_on : 0);
    case Operation::query_gradient: {
      if (by_keys == 1) return keys * static_cast<double>(by_rows);
      // dQ is cut into rows of 32, and its columns among the warps that are left.
      const std::int64_t row_parts = ceil_div(tiling.query_rows, 32);
      const std::int64_t column_parts = std::max<std::int64_t>(1, by_rows * by_keys / row_parts);
      return keys * static_cast<double>(row_parts) + passed_on / 2 * static_cast<double>(1 + column_parts);
    }
    default: return 0;
  }
}

/// Bytes that pass through shared memory in a step: what is moved, and the operands of the products that lie
/// there. S, P and what is summed stay in registers. Lanes that multiply load what their tile needs: a row's
/// operand, which all lanes of the row load alike, at half the cost of the other's.
double shared_bytes(const Step& step, const Problem& problem, Tiling tiling, const Habits& habits) {
  const auto row = static_cast<double>(problem.head_dim * size_of(problem.storage));
  const auto rows = static_cast<double>(step.rows.size());
  const auto keys = static_cast<double>(step.keys.size());
  const std::optional<LaneTile>& lanes = habits.lanes;
  const bool moves = step.operation == Operation::load || step.operation == Operation::store;
  if (habits.fragments && !moves) return fragment_bytes(step, problem, tiling, *habits.fragments);
  if (lanes && (step.operation == Operation::scores || step.operation == Operation::accumulate)) {
    const std::int64_t side = step.operation == Operation::scores ? lanes->keys : lanes->columns;
    return rows * keys * row * operands_a_product(*lanes, side);
  }
  switch (step.operation) {
    case Operation::load:
    case Operation::store: return step.in_l2 ? 0 : static_cast<double>(tile_bytes(step, problem).value());
    case Operation::scores:
    case Operation::probability_gradient: return (rows + keys) * row;
    case Operation::accumulate:
    case Operation::query_gradient: return keys * row;
    case Operation::value_gradient:
    case Operation::key_gradient: return rows * row;
    default: return 0;
  }
}

double ratio(std::int64_t whole, std::int64_t part) {
  return static_cast<double>(whole) / static_cast<double>(part);
}

/// Cuts a walk into kernels, blocks and beats.
class Recorder : public Listener {
 public:
  Recorder(const Problem& problem, const Method& method, const Clock* clock, const Habits& habits)
      : problem_(problem),
        query_tiles_(TileGrid(problem, method.tiling).query_tiles()),
        key_tiles_(TileGrid(problem, method.tiling).key_tiles()),
        tiling_(method.tiling),
        pads_(facts_of(method.algorithm).tiled),
        clock_(clock),
        habits_(habits),
        ledger_(problem) {}

  void kernel(std::string_view, std::int64_t) override {
    end_block();
    kernels_.emplace_back();
  }
  void block() override {
    end_block();
    block_ = std::make_shared<BlockProgram>();
  }
  void step(const Step& step) override {
    if (!block_ || step.elsewhere) return;
    if (step.query_tile != query_tile_ || step.key_tile != key_tile_ || step.part != part_) {
      end_beat();
      part_ = step.part;
      query_tile_ = step.query_tile;
      key_tile_ = step.key_tile;
    }
    ledger_.step(step);
    if (step.operation == Operation::scores && pads_) {
      padding_ = ratio(computed_rows(step.rows.size()), step.rows.size()) *
                 ratio(tiling_.key_rows, step.keys.size());
    }
    shared_ += shared_bytes(step, problem_, tiling_, habits_);
    const bool stored = step.operation == Operation::store || step.operation == Operation::initialise;
    if (!stored && step.operation != Operation::load) return;
    using Way = TileMove::Way;
    block_->moves.push_back({.tile = tile_of(step),
                             .bytes = tile_bytes(step, problem_).value(),
                             .operand = step.operand,
                             .way = stored       ? Way::store
                                    : step.in_l2 ? Way::load_in_l2
                                                 : Way::load});
  }
  std::vector<std::vector<std::shared_ptr<const BlockProgram>>> finish(KeyOrder order) {
    end_block();
    for (auto& blocks : kernels_) {
      for (auto& block : blocks) {
        if (order == KeyOrder::reverse) reverse_keys(*block.program, block.key_tiles);
      }
    }
    std::vector<std::vector<std::shared_ptr<const BlockProgram>>> programs;
    for (auto& blocks : kernels_) {
      auto& kernel = programs.emplace_back();
      for (auto& block : blocks) kernel.push_back(std::move(block.program));
    }
    return programs;
  }

 private:
  struct Recorded {
    std::shared_ptr<BlockProgram> program;
    std::vector<std::int64_t> key_tiles;  // of each beat
  };

  /// Rows that are computed where so many are valid: those of the warpgroups that have a valid one, and all
  /// of the tile where warps multiply by themselves, on FMA units or fragments.
  [[nodiscard]] std::int64_t computed_rows(std::int64_t valid) const {
    constexpr std::int64_t kWarpgroupRows = 64;
    const std::int64_t groups = (valid + kWarpgroupRows - 1) / kWarpgroupRows;
    return habits_.lanes || habits_.fragments
               ? tiling_.query_rows
               : std::max(valid, std::min(groups * kWarpgroupRows, tiling_.query_rows));
  }
  [[nodiscard]] std::int64_t tile_of(const Step& step) const {
    if (is_part(step.operand)) return step.part * query_tiles_ + step.query_tile;
    switch (shape_of(step.operand)) {
      case OperandShape::key_rows: return step.key_tile;
      case OperandShape::scores:
        return step.query_tile * key_tiles_ + std::max<std::int64_t>(step.key_tile, 0);
      default: return step.query_tile;
    }
  }
  void end_beat() {
    if (!block_) return;
    const Work now = ledger_.walked().work;
    const auto moves = static_cast<std::uint32_t>(block_->moves.size());
    const std::uint32_t first = block_->beats.empty() ? 0 : block_->beats.back().last;
    Demand demand = demand_of(difference(now, before_), shared_);
    before_ = now;
    shared_ = 0;
    if (moves == first && demand.products + demand.pointwise == 0) return;
    Beat beat{.first = first, .last = moves, .alone = 1, .busiest = 0};
    beat.shared_bytes = static_cast<float>(demand.shared_bytes);
    if (clock_ != nullptr) {
      // Fragments are told of the whole tile as it is.
      if (habits_.fragments) demand.shared_bytes /= padding_;
      beat.alone = static_cast<float>(padding_ * clock_->alone(demand));
      beat.busiest = static_cast<float>(padding_ * clock_->busiest(demand));
    }
    padding_ = 1;
    block_->beats.push_back(beat);
    beat_keys_.push_back(key_tile_);
  }
  void end_block() {
    if (!block_) return;
    end_beat();
    kernels_.back().push_back({std::move(block_), std::move(beat_keys_)});
    block_ = nullptr;
    beat_keys_.clear();
    query_tile_ = key_tile_ = part_ = -1;
  }
  /// Each run of beats that have a key tile is turned around.
  static void reverse_keys(BlockProgram& program, const std::vector<std::int64_t>& key_tiles) {
    for (std::size_t at = 0; at < key_tiles.size();) {
      std::size_t end = at;
      while (end < key_tiles.size() && key_tiles[end] >= 0) ++end;
      std::reverse(program.beats.begin() + static_cast<std::ptrdiff_t>(at),
                   program.beats.begin() + static_cast<std::ptrdiff_t>(end));
      at = std::max(end, at + 1);
    }
  }

  const Problem& problem_;
  std::int64_t query_tiles_;
  std::int64_t key_tiles_;
  Tiling tiling_;
  bool pads_;           ///< a tile at the ragged edge is filled up and computed
  double padding_ = 1;  ///< computed entries over valid ones, of this beat
  const Clock* clock_;
  Habits habits_;
  Ledger ledger_;
  Work before_;
  double shared_ = 0;
  std::shared_ptr<BlockProgram> block_;
  std::vector<std::int64_t> beat_keys_;
  std::int64_t query_tile_ = -1;
  std::int64_t key_tile_ = -1;
  std::int64_t part_ = -1;
  std::vector<std::vector<Recorded>> kernels_;
};

/// Hears the kernels of a walk and how many blocks each has.
class KernelNames : public Listener {
 public:
  explicit KernelNames(std::vector<BlockSource::Kernel>& kernels) : kernels_(kernels) {}
  void step(const Step&) override {}
  void kernel(std::string_view name, std::int64_t blocks) override {
    kernels_.push_back({std::string(name), blocks});
  }

 private:
  std::vector<BlockSource::Kernel>& kernels_;
};

}  // namespace

BlockSource::BlockSource(const Problem& problem, const Method& method, Habits habits, const Clock* clock)
    : problem_(walked_problem(problem, method)), method_(method), habits_(habits), clock_(clock) {
  const std::int64_t query_tiles = TileGrid(problem_, method.tiling).query_tiles();
  KernelNames names(kernels_);
  if (method.pass != Pass::forward) {
    walk(problem_, method, names);
    return;
  }
  walk_blocks(problem_, method, {0, 1}, names);
  // A kernel whose blocks don't divide among the query tiles walks a head as a whole.
  const bool divides = std::all_of(kernels_.begin(), kernels_.end(),
                                   [&](const Kernel& kernel) { return kernel.blocks % query_tiles == 0; });
  if (divides) parts_ = query_tiles;
}

std::int64_t BlockSource::tiles_of(Operand operand) const {
  const TileGrid grid(problem_, method_.tiling);
  if (is_part(operand)) return grid.query_tiles() * method_.splits;
  switch (shape_of(operand)) {
    case OperandShape::key_rows: return grid.key_tiles();
    case OperandShape::scores: return grid.query_tiles() * grid.key_tiles();
    default: return grid.query_tiles();
  }
}

std::vector<BlockSource::Programs> BlockSource::record(std::int64_t part) {
  Recorder recorder(problem_, method_, clock_, habits_);
  if (method_.pass != Pass::forward) {
    walk(problem_, method_, recorder);
  } else if (parts_ == 1) {
    walk_blocks(problem_, method_, TileGrid(problem_, method_.tiling).every_query_tile(), recorder);
  } else {
    walk_blocks(problem_, method_, {part, part + 1}, recorder);
  }
  return recorder.finish(habits_.key_order);
}

std::shared_ptr<const BlockProgram> BlockSource::block(std::size_t kernel, std::int64_t block) {
  const std::int64_t in_part = kernels_[kernel].blocks / parts_;
  const std::int64_t part = block / in_part;
  const auto at = static_cast<std::size_t>(block % in_part);
  const auto found = kept_.find({kernel, part});
  if (found != kept_.end()) return found->second[at];
  std::vector<Programs> recorded = record(part);
  auto program = recorded[kernel][at];
  if (beats_kept_ > kMostBeats) {
    kept_.clear();
    beats_kept_ = 0;
  }
  for (std::size_t k = 0; k < recorded.size(); ++k) {
    // Of a part only the kernel that runs is kept; a walk that was recorded whole is kept whole.
    if (parts_ > 1 && k != kernel) continue;
    for (const auto& each : recorded[k]) beats_kept_ += static_cast<std::int64_t>(each->beats.size());
    kept_[{k, part}] = std::move(recorded[k]);
  }
  return program;
}

}  // namespace flashsim
