#include "core/attention/first_fault.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/attention/attend.hpp"
#include "core/attention/compensated_sum.hpp"
#include "core/attention/true_row.hpp"
#include "core/problem/block_pattern.hpp"
#include "core/problem/mask.hpp"
#include "core/schedule/chip_values.hpp"

namespace flashsim {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// O and L of one row over a prefix of its keys, or of a part of them, which grows. Weights are kept against
/// the first score and not against their maximum, as long as no weight comes near overflow; then all keys are
/// added once more.
template <class T>
class PrefixTruth {
 public:
  PrefixTruth(const Problem& problem, const Inputs<T>& inputs, const RowPlace& place,
              const BlockPattern* pattern)
      : v_(inputs.v.matrix(place.batch, problem.kv_head_of(place.head))), output_(problem.head_dim) {
    Magnitudes ignored;
    weigh(problem, inputs, place, row_, ignored, pattern);
  }

  /// Forgets what was taken; key `begin` is the first from now on.
  void begin_with(std::int64_t begin) {
    begin_ = seen_ = static_cast<std::size_t>(begin);
    empty_ = true;
    total_ = {};
    output_.clear();
  }

  /// Takes the visible ones of the keys before `end`.
  void grow_to(std::int64_t end) {
    const std::size_t goal = std::min(static_cast<std::size_t>(end), row_.scores.size());
    for (; seen_ < goal; ++seen_) {
      const double score = row_.scores[seen_];
      if (is_masked(score)) continue;
      if (empty_ || score > reference_ + kMostAbove) {
        start_again(score);
      } else {
        add(seen_);
      }
    }
  }
  [[nodiscard]] double output(std::size_t x) const { return empty_ ? 0 : output_.value(x) / total_.value(); }
  [[nodiscard]] double lse() const { return empty_ ? kMinusInfinity : reference_ + std::log(total_.value()); }

 private:
  static constexpr double kMostAbove = 500;

  void add(std::size_t key) {
    const double weight = std::exp(row_.scores[key] - reference_);
    total_.add(weight);
    output_.add(weight, v_.row(static_cast<std::int64_t>(key)));
  }
  void start_again(double reference) {
    reference_ = reference;
    empty_ = false;
    total_ = {};
    output_.clear();
    for (std::size_t key = begin_; key <= seen_; ++key) {
      if (!is_masked(row_.scores[key])) add(key);
    }
  }

  MatrixView<const T> v_;
  TrueRow row_;
  CompensatedSum total_;
  CompensatedSums output_;
  double reference_ = 0;
  bool empty_ = true;
  std::size_t begin_ = 0;
  std::size_t seen_ = 0;
};

/// Holds the running state of one row against the truth, after every key tile.
template <class T>
class FaultFinder : public StepObserver {
 public:
  /// `walked_row` is the number of `row` among the rows of its walk.
  FaultFinder(const Method& method, const Problem& problem, QueryTilePlace tile, RowPlace row,
              std::int64_t walked_row, const Inputs<T>& inputs, const Tolerance& prefix,
              const Tolerance& whole)
      : algorithm_(method.algorithm),
        tile_(tile),
        row_(row),
        walked_row_(walked_row),
        last_key_(visible_keys(problem, row.row)),
        prefix_(prefix),
        whole_(whole),
        truth_(problem, inputs, row, method.pattern.get()) {}

  void begin_head(std::int64_t batch, std::int64_t head) override {
    is_this_head_ = batch == tile_.batch && head == tile_.head;
  }
  void executed(const Step& step, const ChipValues& chip) override {
    const Operation last = algorithm_ == Algorithm::flash1 ? Operation::finish : Operation::accumulate;
    if (step.operation == Operation::reset && step.part >= 0) truth_.begin_with(step.keys.begin);
    if (fault_ || !is_this_head_ || step.operation != last || step.query_tile != tile_.query_tile) return;
    truth_.grow_to(step.keys.end);
    const auto row = walked_row_ - step.rows.begin;
    const double l = chip.read(ChipValue::l).at(row, 0);
    const double m = chip.read(ChipValue::m).at(row, 0);
    const bool empty = m == kMinusInfinity && l == 0;
    // Once the row has seen its last key, its state is the result and held to what the result is held to.
    const bool complete = step.part < 0 && step.keys.end >= last_key_;
    const Tolerance& allowed = complete ? whole_ : prefix_;
    const NumberMatrix o = chip.read(ChipValue::O);
    const double divisor = algorithm_ == Algorithm::flash1 || empty ? 1 : l;
    for (std::int64_t x = 0; x < o.columns; ++x) {
      hold(step, x, o.at(row, x) / divisor, truth_.output(static_cast<std::size_t>(x)),
           allowed.output.value());
    }
    hold(step, std::nullopt, empty ? kMinusInfinity : m + std::log(l), truth_.lse(), allowed.lse.value());
  }
  [[nodiscard]] const std::optional<FirstFault>& fault() const { return fault_; }

 private:
  void hold(const Step& step, std::optional<std::int64_t> column, double got, double expected,
            double tolerance) {
    if (fault_ || (std::isnan(got) && std::isnan(expected)) || got == expected) return;
    if (std::fabs(got - expected) <= tolerance) return;
    fault_ = {.place = row_,
              .query_tile = step.query_tile,
              .key_tile = step.key_tile,
              .column = column,
              .got = got,
              .expected = expected,
              .tolerance = tolerance};
  }

  Algorithm algorithm_;
  QueryTilePlace tile_;
  RowPlace row_;
  std::int64_t walked_row_;
  std::int64_t last_key_;
  const Tolerance& prefix_;
  const Tolerance& whole_;
  PrefixTruth<T> truth_;
  bool is_this_head_ = false;
  std::optional<FirstFault> fault_;
};

/// The first wrong element of the first wrong row, as the result has it.
FirstFault final_fault(const Verification& verification, const RowPlace& row, std::int64_t query_tile) {
  const auto is_of_row = [&](const Comparison& comparison) {
    return comparison.first_wrong && comparison.first_wrong->at.batch == row.batch &&
           comparison.first_wrong->at.head == row.head && comparison.first_wrong->at.row == row.row;
  };
  const bool output = is_of_row(verification.output);
  const Comparison& wrong = output ? verification.output : verification.lse;
  FirstFault fault{.place = row,
                   .query_tile = query_tile,
                   .got = wrong.first_wrong->got,
                   .expected = wrong.first_wrong->expected,
                   .tolerance = wrong.tolerance};
  if (output) fault.column = wrong.first_wrong->at.column;
  return fault;
}

}  // namespace

template <class T>
std::optional<FirstFault> first_fault(const Problem& problem, const Method& method, const Switches& switches,
                                      const Inputs<T>& inputs, const Verification& verification) {
  const std::optional<RowPlace> row = verification.first_wrong_row();
  if (!row) return std::nullopt;
  // Packed, the rows of a group's heads lie query by query.
  const std::int64_t group = method.algorithm == Algorithm::split_kv ? problem.heads / problem.kv_heads : 1;
  const std::int64_t walked_row = row->row * group + row->head % group;
  const std::int64_t query_tile = walked_row / method.tiling.query_rows;
  if (facts_of(method.algorithm).online) {
    // A prefix may weigh larger values than whole rows do: it is allowed what the largest value allows.
    Magnitudes magnitudes = verification.tolerance.magnitudes;
    magnitudes.summed_value = magnitudes.output = magnitudes.value;
    const Tolerance prefix = tolerance_of<T>(problem, method, magnitudes, inputs.scores_given());
    const QueryTilePlace tile{row->batch, row->head / group, query_tile};
    FaultFinder<T> finder(method, problem, tile, *row, walked_row, inputs, prefix, verification.tolerance);
    attend<T>(problem, method, switches, inputs, {.observer = &finder, .only = tile});
    if (finder.fault()) return finder.fault();
  }
  return final_fault(verification, *row, query_tile);
}

template std::optional<FirstFault> first_fault(const Problem&, const Method&, const Switches&,
                                               const Inputs<float>&, const Verification&);
template std::optional<FirstFault> first_fault(const Problem&, const Method&, const Switches&,
                                               const Inputs<double>&, const Verification&);

}  // namespace flashsim
