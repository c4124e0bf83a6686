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

/// Bytes that pass through shared memory in a step: what is moved, and the operands of the products that lie
/// there. S, P and what is summed stay in registers. Lanes that multiply load what their tile needs: a row's
/// operand, which all lanes of the row load alike, at half the cost of the other's.
double shared_bytes(const Step& step, const Problem& problem, const std::optional<LaneTile>& lanes) {
  const auto row = static_cast<double>(problem.head_dim * size_of(problem.storage));
  const auto rows = static_cast<double>(step.rows.size());
  const auto keys = static_cast<double>(step.keys.size());
  if (lanes && (step.operation == Operation::scores || step.operation == Operation::accumulate)) {
    const std::int64_t side = step.operation == Operation::scores ? lanes->keys : lanes->columns;
    return rows * keys * row * operands_a_product(*lanes, side);
  }
  switch (step.operation) {
    case Operation::load:
    case Operation::store: return static_cast<double>(tile_bytes(step, problem).value());
    case Operation::scores:
    case Operation::probability_gradient: return (rows + keys) * row;
    case Operation::accumulate:
    case Operation::query_gradient: return keys * row;
    case Operation::value_gradient:
    case Operation::key_gradient: return rows * row;
    default: return 0;
  }
}

/// Cuts a walk into kernels, blocks and beats.
class Recorder : public Listener {
 public:
  Recorder(const Problem& problem, const Method& method, const Clock* clock,
           const std::optional<LaneTile>& lanes)
      : problem_(problem),
        query_tiles_(TileGrid(problem, method.tiling).query_tiles()),
        key_tiles_(TileGrid(problem, method.tiling).key_tiles()),
        clock_(clock),
        lanes_(lanes),
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
    shared_ += shared_bytes(step, problem_, lanes_);
    const bool stored = step.operation == Operation::store || step.operation == Operation::initialise;
    if (!stored && step.operation != Operation::load) return;
    block_->moves.push_back({.tile = tile_of(step),
                             .bytes = tile_bytes(step, problem_).value(),
                             .operand = step.operand,
                             .stored = stored});
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
    const Demand demand = demand_of(difference(now, before_), shared_);
    before_ = now;
    shared_ = 0;
    if (moves == first && demand.products + demand.pointwise == 0) return;
    Beat beat{.first = first, .last = moves, .alone = 1, .busiest = 0};
    if (clock_ != nullptr) {
      beat.alone = static_cast<float>(clock_->alone(demand));
      beat.busiest = static_cast<float>(clock_->busiest(demand));
    }
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
  const Clock* clock_;
  std::optional<LaneTile> lanes_;
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
    : problem_(method.algorithm == Algorithm::split_kv ? packed_heads(problem) : problem),
      method_(method),
      habits_(habits),
      clock_(clock) {
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
  Recorder recorder(problem_, method_, clock_, habits_.lanes);
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
