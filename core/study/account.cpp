#include "core/study/account.hpp"

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
  void allocate(Operand operand, Bytes size) override { next_.allocate(operand, size); }
  void release(Operand operand, Bytes size) override { next_.release(operand, size); }

 private:
  static constexpr std::int64_t kInterval = 1 << 20;
  Listener& next_;
  std::int64_t steps_;
  const Progress& progress_;
  std::int64_t seen_ = 0;
};

std::optional<StandardBeside> standard_beside(const Problem& problem, const AccountSources& sources) {
  const Prediction standard = sources.predict(problem, Method{.algorithm = Algorithm::standard});
  if (standard.tally.hbm_total().total().overflowed()) return std::nullopt;
  return StandardBeside{.hbm = standard.tally.hbm_total().total(),
                        .peak_intermediate = total_size(standard.intermediate)};
}

}  // namespace

Error leaves_64_bits(Algorithm algorithm, const Problem& problem) {
  return {fmt::format("a count of {} leaves 64 bits ({})", facts_of(algorithm).name, shape_text(problem)),
          "make the problem smaller (--seq, --kv-seq, --batch, --heads, --head-dim) or choose other tiles"};
}

std::optional<FlopsPerByte> AccountReport::balance() const {
  const Machine::Rates& rates = machine.flops_per_second;
  std::optional<double> rate;
  switch (problem.storage) {
    case NumberType::fp8: rate = rates.fp8; break;
    case NumberType::fp16: rate = rates.fp16; break;
    case NumberType::bf16: rate = rates.bf16; break;
    case NumberType::fp32: rate = rates.fp32; break;
    case NumberType::fp64: rate = rates.fp64; break;
  }
  if (!rate) return std::nullopt;
  return FlopsPerSecond{*rate} / machine.memory_bandwidth;
}

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
  report.method.algorithm = request.algorithm.value_or(Algorithm::flash2);
  const auto problem = resolve_problem(request);
  if (!problem) return problem.error();
  report.problem = *problem;
  if (auto error = check_method(request, report.method.algorithm, report.problem)) return *error;

  report.gpu = request.gpu.value_or("a100");
  auto machine = find_machine(report.gpu);
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

  if (request.count_always || report.tally().steps <= Count(kStepsCountedAlways)) {
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

  report.standard = standard_beside(report.problem, sources);
  return report;
}

}  // namespace flashsim
