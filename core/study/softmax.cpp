#include "core/study/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// Walks of up to so many steps a row are counted on every run.
constexpr std::int64_t kStepsCounted = 1'000'000;

template <class T>
NaiveLimits limits_in(NumberType type, const SoftmaxProblem& problem) {
  const double largest = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  // Half the least subnormal number is where rounding to nearest turns to 0.
  const double smallest = std::log(static_cast<double>(std::numeric_limits<T>::denorm_min())) - std::log(2.0);
  return {.accumulation = type,
          .largest = largest,
          .largest_even = largest - std::log(static_cast<double>(problem.columns)),
          .smallest = smallest};
}

NaiveLimits naive_limits(const SoftmaxProblem& problem) {
  const NumberType type = accumulation_type(problem.storage);
  return type == NumberType::fp64 ? limits_in<double>(type, problem) : limits_in<float>(type, problem);
}

/// How often every element of one tensor makes up so many bytes.
std::int64_t times(Bytes bytes, const SoftmaxProblem& problem) {
  return (bytes.count.value()) / (Count(problem.rows) * problem.row_bytes().count).value();
}

}  // namespace

std::optional<bool> SoftmaxReport::predicted_equals_counted() const {
  const bool all_counted =
      std::all_of(ways.begin(), ways.end(), [](const SoftmaxAccount& a) { return a.counted.has_value(); });
  const bool none_differs =
      std::all_of(ways.begin(), ways.end(), [](const SoftmaxAccount& a) { return a.discrepancies.empty(); });
  if (!none_differs) return false;
  return all_counted ? std::optional(true) : std::nullopt;
}

Result<SoftmaxReport> make_softmax(const SoftmaxRequest& request, SoftmaxPredictor predictor) {
  SoftmaxReport report;
  SoftmaxProblem& problem = report.problem;
  problem.rows = request.rows.value_or(problem.rows);
  problem.columns = request.columns.value_or(problem.columns);
  problem.storage = request.dtype.value_or(problem.storage);
  problem.top_k = request.top_k;
  if (auto error = problem.validate()) return *error;
  report.gpu = request.gpu.value_or("a100");
  auto machine = find_machine(report.gpu);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();
  report.shared_memory = request.shared_memory.value_or(report.machine.shared_memory_per_block);
  const auto chip = rows_on_chip(problem, report.shared_memory);
  if (!chip) return chip.error();
  report.chip = *chip;
  report.naive = naive_limits(problem);

  for (const SoftmaxWayFacts& facts : kSoftmaxWays) {
    if (facts.selects && !problem.top_k) continue;
    SoftmaxAccount account{.way = facts.way, .prediction = predictor(facts.way, problem, report.chip)};
    const SoftmaxTally& tally = account.prediction.tally;
    if (tally.overflowed()) {
      return Error{
          fmt::format("a count of softmax over {} × {} leaves 64 bits", problem.rows, problem.columns),
          "make --rows or --columns smaller"};
    }
    account.loads = times(tally.input.read + tally.output.read, problem);
    account.stores = times(tally.output.written, problem);
    if (request.count_always || tally.steps <= Count(kStepsCounted)) {
      account.counted = count_softmax(facts.way, problem, report.chip);
      account.discrepancies = discrepancies(tally, *account.counted);
    }
    report.ways.push_back(std::move(account));
  }
  return report;
}

SoftmaxRequest laid_over(SoftmaxRequest over, const SoftmaxRequest& under) {
  const auto fill = [](auto& value, const auto& otherwise) {
    if (!value) value = otherwise;
  };
  if (!over.gpu) fill(over.shared_memory, under.shared_memory);
  fill(over.rows, under.rows);
  fill(over.columns, under.columns);
  fill(over.top_k, under.top_k);
  fill(over.dtype, under.dtype);
  fill(over.gpu, under.gpu);
  over.count_always = over.count_always || under.count_always;
  return over;
}

}  // namespace flashsim
