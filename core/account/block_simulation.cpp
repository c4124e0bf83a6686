#include "core/account/block_simulation.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "core/account/blocks.hpp"
#include "core/account/l2_cache.hpp"

namespace flashsim {
namespace {

/// A beat whose tiles come from memory takes so much longer: the loads of the next tile are under way while
/// this one is worked on, so little of the wait shows (docs/machine-model.md).
constexpr double kMissDelay = 0.05;
/// Of the L2's size what a working set finds: measured reads hit as far (docs/machine-model.md).
constexpr double kUsableL2 = 0.93;
/// A block's first loads and its last stores, which nothing hides.
constexpr double kBlockStart = 1e-6;
/// The first pass over the code of a kernel that multiplies fragments: it is long, for it is unrolled, and
/// comes from memory as everything else does.
constexpr double kFirstCode = 4e-6;
/// Steps of all walks that are followed at most: some minutes.
constexpr std::int64_t kMostSteps = 10'000'000'000;
/// Steps of a walk that can be recorded whole: some 20 bytes each.
constexpr std::int64_t kMostStepsAtOnce = 20'000'000;
/// Neighbouring SMs are on different sides of the L2, in an order that turns after so many of them: a number
/// of heads that divides the SMs' would tie each head to a side (docs/machine-model.md).
constexpr std::int64_t kSideTurns = 4;

/// Numbers the tiles of all walks.
class TileNumbers {
 public:
  /// Of the operands that `tally` saw cross into or out of the SMs.
  TileNumbers(const Problem& problem, const Method& method, const BlockSource& source, const Tally& tally)
      : walks_(walks_of(problem, method).value()),
        group_(std::max<std::int64_t>(1, walks_ / (problem.batch * problem.kv_heads))) {
    for (const Operand operand : kOperands) {
      if (tally.sm_of(operand).total() == Bytes()) continue;
      Of& of = operands_[static_cast<std::size_t>(operand)];
      of.first = Count(total_);
      of.in_walk = source.tiles_of(operand);
      total_ = total_ + Count(of.in_walk) * (is_shared(operand) ? walks_ / group_ : walks_);
    }
  }
  [[nodiscard]] Count total() const { return total_; }
  [[nodiscard]] std::int64_t number(std::int64_t walk, const TileMove& move) const {
    const Of& of = operands_[static_cast<std::size_t>(move.operand)];
    return of.first.value() + (is_shared(move.operand) ? walk / group_ : walk) * of.in_walk + move.tile;
  }

 private:
  struct Of {
    Count first;
    std::int64_t in_walk = 0;
  };
  /// Query heads of a group read the same keys and values.
  static bool is_shared(Operand operand) { return operand == Operand::K || operand == Operand::V; }

  std::int64_t walks_;
  std::int64_t group_;
  std::array<Of, kOperands.size()> operands_;
  Count total_;
};

/// One block on an SM.
struct Running {
  std::shared_ptr<const BlockProgram> program;
  std::int64_t walk = 0;
  std::size_t beat = 0;
};

class Run {
 public:
  Run(const Problem& problem, const Method& method, const Machine& machine, Habits habits, const Tally& tally,
      const Clock* clock)
      : machine_(machine),
        habits_(habits),
        source_(problem, method, habits, clock),
        numbers_(problem, method, source_, tally),
        walks_(walks_of(problem, method).value()) {}

  [[nodiscard]] Count tiles() const { return numbers_.total(); }
  [[nodiscard]] bool whole() const { return source_.whole(); }
  [[nodiscard]] std::size_t kernels() const { return source_.kernels().size(); }

  struct Result {
    double seconds = 0;
    double busy = 0;    ///< SM-seconds
    double shared = 0;  ///< bytes in and out of shared memory
    Bytes loaded;       ///< into the SMs
    Bytes looked_up;    ///< that, and what is added to where it lies
  };

  /// Runs one kernel against the cache.
  Result kernel(std::size_t kernel, std::int64_t blocks_per_sm, L2Cache& cache,
                const std::function<void(double)>& progress) {
    const std::int64_t blocks = source_.kernels()[kernel].blocks;
    const LaunchOrder order = source_.kernels()[kernel].name == "query_gradient"
                                  ? habits_.query_gradient_order.value_or(habits_.launch_order)
                                  : habits_.launch_order;
    const std::int64_t items = walks_ * blocks;
    const std::int64_t slots = std::min(items, machine_.sms * blocks_per_sm);
    std::vector<Running> running(static_cast<std::size_t>(slots));
    std::vector<std::int64_t> resident(static_cast<std::size_t>(machine_.sms));
    using Event = std::pair<double, std::int64_t>;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::int64_t next = 0;
    Result result;

    const auto start = [&](std::int64_t slot) {
      Running& block = running[static_cast<std::size_t>(slot)];
      const auto [walk, number] = item(next++, blocks, order);
      block = {.program = source_.block(kernel, number), .walk = walk, .beat = 0};
    };
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      start(slot);
      ++resident[static_cast<std::size_t>(slot % machine_.sms)];
      events.emplace(kBlockStart, slot);
    }
    while (!events.empty()) {
      const auto [now, slot] = events.top();
      events.pop();
      Running& block = running[static_cast<std::size_t>(slot)];
      const std::int64_t sm = slot % machine_.sms;
      double end = now;
      if (block.beat < block.program->beats.size()) {
        const Beat& beat = block.program->beats[block.beat++];
        const double missed = play(*block.program, beat, block.walk, sm, cache, result);
        const auto sharing = static_cast<double>(resident[static_cast<std::size_t>(sm)]);
        const double length = std::max<double>(beat.alone, sharing * beat.busiest);
        result.busy += beat.busiest;
        result.shared += beat.shared_bytes;
        end += length * (1 + kMissDelay * missed);
      }
      if (block.beat >= block.program->beats.size()) {
        if (next < items) {
          start(slot);
          if (progress && next % kTold == 0) progress(static_cast<double>(next) / static_cast<double>(items));
          events.emplace(end + kBlockStart, slot);
        } else {
          --resident[static_cast<std::size_t>(sm)];
          result.seconds = std::max(result.seconds, end);
        }
        continue;
      }
      events.emplace(end, slot);
    }
    return result;
  }

 private:
  static constexpr std::int64_t kTold = 64;

  /// The walk and the block that start as number `n`.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> item(std::int64_t n, std::int64_t blocks,
                                                           LaunchOrder order) const {
    switch (order) {
      case LaunchOrder::longest_first: return {n / blocks, blocks - 1 - n % blocks};
      case LaunchOrder::heads_first: return {n % walks_, n / walks_};
      case LaunchOrder::longest_of_all_first: return {n % walks_, blocks - 1 - n / walks_};
      default: return {n / blocks, n % blocks};
    }
  }

  /// Plays a beat's moves against the cache; gives the share of its loads that came from memory.
  double play(const BlockProgram& program, const Beat& beat, std::int64_t walk, std::int64_t sm,
              L2Cache& cache, Result& result) {
    using Way = TileMove::Way;
    const std::int64_t side = (sm + sm / kSideTurns) % machine_.l2_partitions;
    std::int64_t bytes = 0;
    std::int64_t missed = 0;
    std::int64_t added = 0;
    for (std::uint32_t i = beat.first; i < beat.last; ++i) {
      const TileMove& move = program.moves[i];
      const std::int64_t tile = numbers_.number(walk, move);
      switch (move.way) {
        case Way::store: cache.store(tile, move.bytes, side); break;
        case Way::load_in_l2:
          added += move.bytes;
          cache.load(tile, move.bytes, side);
          break;
        case Way::load: bytes += move.bytes; missed += cache.load(tile, move.bytes, side);
      }
    }
    result.loaded += Bytes(bytes);
    result.looked_up += Bytes(bytes + added);
    return bytes == 0 ? 0 : static_cast<double>(missed) / static_cast<double>(bytes);
  }

  const Machine& machine_;
  Habits habits_;
  BlockSource source_;
  TileNumbers numbers_;
  std::int64_t walks_;
};

/// Bytes in and out of shared memory in a whole run whose products aren't made of fragments.
double shared_bytes(const Tally& tally, const Problem& problem, const Habits& habits) {
  const Bytes moved = tally.sram_of(Operation::load).written + tally.sram_of(Operation::store).read;
  if (habits.lanes) {
    // Half of the FLOPs make S and half O, two to a multiply-add.
    const double each =
        static_cast<double>(tally.work.products.value()) / 4 * static_cast<double>(size_of(problem.storage));
    return static_cast<double>(moved.value()) +
           each * (operands_a_product(*habits.lanes, habits.lanes->keys) +
                   operands_a_product(*habits.lanes, habits.lanes->columns));
  }
  return static_cast<double>(
      (moved + tally.sram_of(Operation::scores).read + tally.sram_of(Operation::probability_gradient).read)
          .value());
}

/// The demand of a whole run on the whole machine.
std::vector<ResourceTime> resource_times(const Clock& clock, const Machine& machine, const Tally& tally,
                                         double shared, const AfterL2& after, double launch) {
  const UnitTimes one = clock.on_one_sm(demand_of(tally.work, shared));
  const auto sms = static_cast<double>(machine.sms);
  std::vector<ResourceTime> times;
  if (clock.has_tensor_units()) times.push_back({"tensor", {one.tensor / sms}});
  times.push_back({"fma", {one.fma / sms}});
  times.push_back({"exponential", {one.exponential / sms}});
  times.push_back({"sram", {one.sram / sms}});
  if (machine.l2_bandwidth) times.push_back({"l2", tally.sm_total().total() / *machine.l2_bandwidth});
  times.push_back({"hbm", after.hbm.total() / machine.memory_bandwidth});
  times.push_back({"launch", {launch}});
  return times;
}

/// The unit of an SM that the work keeps busy longest. The two of softmax take turns, and so count together.
std::string busiest_unit(const Clock& clock, const Demand& demand) {
  const UnitTimes t = clock.on_one_sm(demand);
  const double softmax = t.exponential + (clock.has_tensor_units() ? t.fma : 0);
  const double products = clock.has_tensor_units() ? t.tensor : t.fma;
  if (t.sram > std::max(products, softmax)) return "sram";
  if (products >= softmax) return clock.has_tensor_units() ? "tensor" : "fma";
  return t.exponential >= t.fma || !clock.has_tensor_units() ? "exponential" : "fma";
}

}  // namespace

Result<Simulation> simulate(const Problem& problem, const Method& method, const Machine& machine,
                            Habits habits, std::span<const Occupancy> occupancy, const Tally& tally,
                            Flops paper_flops, const std::function<void(double)>& progress) {
  Simulation simulation;
  const auto clock = Clock::of(machine, problem, habits);
  if (!clock) simulation.no_time = clock.error().message;
  Run run(problem, method, machine, habits, tally, clock ? &*clock : nullptr);
  if (run.tiles().overflowed() || run.tiles() > Count(L2Cache::kMostTiles)) {
    return Error{fmt::format("{} have more than {} tiles, too many to follow through the L2",
                             shape_text(problem), L2Cache::kMostTiles),
                 "leave --machine out, take larger tiles, or a smaller problem"};
  }
  const Count steps = tally.steps * walks_of(problem, method);
  if (steps > Count(kMostSteps)) {
    return Error{
        fmt::format("{} take {} steps, and at most {} are followed on a machine", shape_text(problem),
                    steps.overflowed() ? "more than 2⁶³" : fmt::format("{}", steps.value()), kMostSteps),
        "leave --machine out, take larger tiles, or a smaller problem"};
  }
  if (run.whole() && tally.steps > Count(kMostStepsAtOnce)) {
    return Error{
        fmt::format("{} take {} steps a head, and at most {} are followed of a walk that has no parts",
                    shape_text(problem), tally.steps.value(), kMostStepsAtOnce),
        "leave --machine out, take larger tiles, or a shorter sequence"};
  }
  if (habits.blocks_per_sm.value_or(1) > machine.blocks_per_sm) {
    return Error{fmt::format("--blocks-per-sm is {}, and an SM of the {} holds {} at most",
                             *habits.blocks_per_sm, machine.title, machine.blocks_per_sm),
                 ""};
  }
  const Bytes usable(static_cast<std::int64_t>(kUsableL2 * static_cast<double>(machine.l2.value())));
  L2Cache cache(usable, machine.l2_partitions, run.tiles().value());
  double longest = -1;
  PredictedTime time;
  double launches = 0;
  double shared = habits.fragments ? 0 : shared_bytes(tally, problem, habits);
  for (std::size_t k = 0; k < run.kernels(); ++k) {
    SimulatedKernel kernel{.name = occupancy[k].kernel};
    const bool multiplies = !occupancy[k].footprint.shared_memory.empty();
    kernel.blocks_per_sm = occupancy[k].blocks_per_sm;
    // Habits tell of the kernel that multiplies, and not of those that only bring its sums together.
    if (multiplies || !habits.fragments) {
      kernel.blocks_per_sm = habits.blocks_per_sm.value_or(kernel.blocks_per_sm);
    }
    const Flow before{Bytes(cache.hbm_read_bytes()), Bytes(cache.hbm_write_bytes())};
    const auto told = [&](double done) {
      progress((static_cast<double>(k) + done) / static_cast<double>(run.kernels()));
    };
    const Run::Result result =
        run.kernel(k, kernel.blocks_per_sm, cache, progress ? std::function<void(double)>(told) : nullptr);
    simulation.after_l2.uncached_read += result.looked_up;
    if (habits.fragments) shared += result.shared;
    kernel.hbm = {Bytes(cache.hbm_read_bytes()) - before.read,
                  Bytes(cache.hbm_write_bytes()) - before.written};
    kernel.blocks = {result.seconds};
    kernel.busy_share =
        result.seconds > 0 ? result.busy / (result.seconds * static_cast<double>(machine.sms)) : 0;
    const double hbm = (kernel.hbm.total() / machine.memory_bandwidth).value;
    const double l2 = machine.l2_bandwidth ? (result.loaded / *machine.l2_bandwidth).value : 0;
    const double floor = std::max({result.seconds, hbm, l2});
    // Warps that multiply fragments also ask for what comes from memory, and wait for it.
    const double unhidden =
        habits.fragments ? overlapping(result.seconds, hbm) - std::max(result.seconds, hbm) : 0;
    const double code = habits.fragments && multiplies ? kFirstCode : 0;
    kernel.total = {floor + unhidden + code + machine.launch_seconds};
    launches += machine.launch_seconds;
    kernel.bound = machine.launch_seconds > floor ? "launch"
                   : floor == result.seconds      ? ""
                   : floor == hbm                 ? "hbm"
                                                  : "l2";
    if (clock && kernel.bound.empty())
      kernel.bound =
          busiest_unit(*clock, demand_of(tally.work, habits.lanes || habits.fragments ? shared : 0));
    time.total = time.total + kernel.total;
    if (kernel.total.value > longest) {
      longest = kernel.total.value;
      time.bound = kernel.bound;
    }
    simulation.kernels.push_back(std::move(kernel));
  }
  simulation.after_l2.hbm = {Bytes(cache.hbm_read_bytes()), Bytes(cache.hbm_write_bytes())};
  simulation.after_l2.waiting = Bytes(cache.waiting_bytes());
  simulation.after_l2.compulsory_read = Bytes(cache.compulsory_read_bytes());
  if (clock) {
    time.resources = resource_times(*clock, machine, tally, shared, simulation.after_l2, launches);
    time.rate = paper_flops / time.total;
    time.share_of_peak = time.rate.value / clock->peak();
    simulation.time = std::move(time);
  }
  return simulation;
}

}  // namespace flashsim
