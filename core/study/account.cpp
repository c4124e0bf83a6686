#include "core/study/account.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/account/ledger.hpp"
#include "core/study/method_choice.hpp"

namespace flashsim {
namespace {

/// Hands every step on, and tells now and then how far the walk is.
class Watched : public Listener {
 public:
  Watched(Listener& next, std::int64_t steps, const Progress& progress)
      : next_(next), steps_(steps), progress_(progress) {}

  void step(const Step& step) override {
    if (++seen_ % kInterval == 0) progress_(static_cast<double>(seen_) / static_cast<double>(steps_));
    next_.step(step);
  }
  void kernel(std::string_view name, std::int64_t blocks) override { next_.kernel(name, blocks); }
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override {
    next_.launches(name, launches, blocks);
  }
  void allocate(Operand operand, Bytes size) override { next_.allocate(operand, size); }
  void release(Operand operand, Bytes size) override { next_.release(operand, size); }

 private:
  static constexpr std::int64_t kInterval = 1 << 20;
  Listener& next_;
  std::int64_t steps_;
  const Progress& progress_;
  std::int64_t seen_ = 0;
};

std::optional<StandardBeside> standard_beside(const Problem& problem, Pass pass,
                                              const AccountSources& sources) {
  const Method method{.algorithm = Algorithm::standard, .pass = pass};
  const Prediction standard = sources.predict(problem, method);
  if (standard.tally.hbm_total().total().overflowed()) return std::nullopt;
  return StandardBeside{.hbm = standard.tally.hbm_total().total(),
                        .peak_intermediate = total_size(standard.intermediate),
                        .saved_for_backward = total_size(saved_for_backward(problem, method))};
}

}  // namespace

const Occupancy& AccountReport::main_kernel() const {
  if (method.pass == Pass::forward) return kernels.front();
  const auto kept = [](const Occupancy& kernel) {
    return kernel.footprint.shared_total() + kernel.footprint.register_total();
  };
  return *std::max_element(kernels.begin(), kernels.end(),
                           [&](const Occupancy& a, const Occupancy& b) { return kept(a) < kept(b); });
}

Error leaves_64_bits(Algorithm algorithm, const Problem& problem) {
  return {fmt::format("a count of {} leaves 64 bits ({})", facts_of(algorithm).name, shape_text(problem)),
          "make the problem smaller (--seq, --kv-seq, --batch, --heads, --head-dim) or choose other tiles"};
}

std::optional<FlopsPerByte> AccountReport::balance() const { return machine.balance(problem.storage); }

std::optional<bool> AccountReport::predicted_equals_counted() const {
  if (!counted) return std::nullopt;
  return discrepancies.empty();
}

Count score_matrix_entries(const Problem& problem) { return Count(problem.seq) * problem.kv_seq; }

Bytes score_matrix_bytes(const Problem& problem) {
  return Bytes(score_matrix_entries(problem) * size_of(problem.storage));
}

Result<AccountReport> make_account(const AccountRequest& request, const Progress& progress,
                                   const AccountSources& sources) {
  AccountReport report;
  report.method = sources.own_method;
  report.method.algorithm = request.algorithm.value_or(Algorithm::flash2);
  const auto problem = resolve_problem(request);
  if (!problem) return problem.error();
  report.problem = *problem;
  if (auto error = check_method(request, report.method.algorithm, report.problem)) return *error;
  report.method.pass = request.pass.value_or(Pass::forward);
  report.method.passes = resolve_passes(request.passes, report.problem);
  report.method.deterministic = request.deterministic.value_or(false);

  report.gpu = request.gpu.value_or("a100");
  auto machine = sources.machine(report.gpu);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();
  report.shared_memory = request.shared_memory.value_or(report.machine.shared_memory_per_block);
  const bool limit_is_machines = report.shared_memory == report.machine.shared_memory_per_block;
  const std::string limit_name = limit_is_machines
                                     ? fmt::format("a block's limit on {}", report.machine.title)
                                     : std::string("the limit given by --sram");
  const auto tiling = resolve_tiling(report.method.algorithm, report.problem, request.tiles,
                                     report.shared_memory, limit_name);
  if (!tiling) return tiling.error();
  report.method.tiling = *tiling;
  const auto splits = choose_rest(request, report.problem, report.machine, report.method);
  if (!splits) return splits.error();
  report.splits = *splits;

  report.prediction = sources.predict(report.problem, report.method);
  report.flops = problem_flops(report.problem, report.method);
  if (report.method.pass != Pass::forward) {
    report.saved_for_backward = saved_for_backward(report.problem, report.method);
  }
  if (report.tally().overflowed() || report.memory_needed().overflowed() ||
      score_matrix_bytes(report.problem).overflowed() || report.flops.paper.value().overflowed() ||
      report.flops.exact.value().overflowed()) {
    return leaves_64_bits(report.method.algorithm, report.problem);
  }
  for (const KernelLaunch& kernel : report.tally().kernels) {
    Footprint footprint =
        footprint_of(report.method.algorithm, kernel.name, report.problem, report.method.tiling);
    if (footprint.shared_total().overflowed() || footprint.register_total().overflowed()) {
      return leaves_64_bits(report.method.algorithm, report.problem);
    }
    report.kernels.push_back(
        occupancy_of(kernel, std::move(footprint), report.machine, report.shared_memory));
  }

  const bool short_walk = report.tally().steps <= Count(kStepsCountedAlways);
  if (!request.count_never && (request.count_always || short_walk)) {
    Ledger ledger(report.problem);
    if (progress) {
      Watched watched(ledger, report.tally().steps.value(), progress);
      sources.walk(report.problem, report.method, watched);
    } else {
      sources.walk(report.problem, report.method, ledger);
    }
    report.counted = ledger.times(walks_of(report.problem, report.method));
    report.discrepancies = discrepancies(report.tally(), *report.counted);
  }

  report.habits = {.launch_order = request.launch_order.value_or(LaunchOrder::rows),
                   .key_order = request.key_order.value_or(KeyOrder::forward),
                   .overlap = request.overlap.value_or(Overlap::overlapped),
                   .blocks_per_sm = request.blocks_per_sm};
  if (sources.habits) report.habits = *sources.habits;
  if (request.machine.value_or(false) && report.method.algorithm == Algorithm::memory_efficient) {
    report.not_simulated =
        fmt::format("{} is a chain of many launches, which the block simulation doesn't follow",
                    facts_of(report.method.algorithm).name);
  } else if (request.machine.value_or(false)) {
    auto simulation = simulate(report.problem, report.method, report.machine, report.habits, report.kernels,
                               report.tally(), Flops(report.flops.paper.value()), progress);
    if (!simulation) return simulation.error();
    report.simulation = std::move(simulation).value();
  }

  report.standard = standard_beside(report.problem, report.method.pass, sources);
  return report;
}

}  // namespace flashsim
