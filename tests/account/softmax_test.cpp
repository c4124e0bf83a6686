// Softmax by itself: predicted against counted, against the paper's accesses, and against the definition.
#include "core/account/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/schedule/softmax.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

SoftmaxProblem problem(std::int64_t rows, std::int64_t columns, std::optional<std::int64_t> k,
                       NumberType storage = NumberType::fp16) {
  return {.rows = rows, .columns = columns, .storage = storage, .top_k = k};
}

/// Accesses of each element, without the k results.
std::int64_t accesses(SoftmaxWay way, const SoftmaxProblem& p, std::int64_t room) {
  const SoftmaxTally tally = predict_softmax(way, p, rows_on_chip(p, Bytes(room)).value()).tally;
  const Bytes moved = tally.input.total() + tally.output.total();
  const Count tensor = Count(p.rows) * p.row_bytes().count;
  REQUIRE(moved.value() % tensor.value() == 0);
  return moved.value() / tensor.value();
}

TEST_CASE("predicted equals counted on every figure, for rows that fit and rows that don't") {
  int fit = 0;
  int ragged = 0;
  for (std::int64_t columns = 1; columns <= 40; ++columns) {
    for (const std::int64_t room : {1, 2, 3, 7, 16, 40, 41, 100}) {
      for (const NumberType type : {NumberType::fp8, NumberType::fp16, NumberType::fp64}) {
        if (room < size_of(type)) continue;
        const SoftmaxProblem p = problem(1 + columns % 3, columns, 1 + columns / 2, type);
        const RowsOnChip chip = rows_on_chip(p, Bytes(room)).value();
        fit += chip.fits() ? 1 : 0;
        ragged += columns % chip.columns != 0 ? 1 : 0;
        for (const SoftmaxWayFacts& facts : kSoftmaxWays) {
          const auto found =
              discrepancies(predict_softmax(facts.way, p, chip).tally, count_softmax(facts.way, p, chip));
          CAPTURE(facts.name, columns, room, name_of(type));
          REQUIRE(found.empty());
        }
      }
    }
  }
  CHECK(fit > 100);
  CHECK(ragged > 100);
}

TEST_CASE("the paper's accesses an element, where rows don't fit") {
  const SoftmaxProblem p = problem(10, 1000, 5);
  using enum SoftmaxWay;
  CHECK(accesses(naive, p, 100) == 3);
  CHECK(accesses(safe, p, 100) == 4);
  CHECK(accesses(online, p, 100) == 3);
  CHECK(accesses(safe_top_k, p, 100) == 5);
  CHECK(accesses(online_top_k, p, 100) == 4);
  CHECK(accesses(fused_top_k, p, 100) == 1);
}

TEST_CASE(
    "a row that fits is loaded once and stored once, whatever the passes; a second kernel loads it again") {
  const SoftmaxProblem p = problem(10, 1000, 5);
  using enum SoftmaxWay;
  for (const SoftmaxWay way : {naive, safe, online}) {
    CHECK(accesses(way, p, 2000) == 2);
    CHECK(accesses(way, p, 1999) > 2);
  }
  CHECK(accesses(safe_top_k, p, 2000) == 3);
  CHECK(accesses(online_top_k, p, 2000) == 3);
  CHECK(accesses(fused_top_k, p, 2000) == 1);
}

TEST_CASE("the k results are values and indices, 4 bytes each or 8 in rows that need them") {
  const auto results = [](const SoftmaxProblem& p) {
    return predict_softmax(SoftmaxWay::fused_top_k, p, {.rows = 0, .columns = 10}).tally.results.written;
  };
  CHECK(results(problem(7, 100, 3)) == Bytes(7 * 3 * (2 + 4)));
  CHECK(results(problem(7, 100, 3, NumberType::fp64)) == Bytes(7 * 3 * (8 + 4)));
  CHECK(results(problem(7, std::int64_t{1} << 31, 3)) == Bytes(7 * 3 * (2 + 4)));
  CHECK(results(problem(7, (std::int64_t{1} << 31) + 1, 3)) == Bytes(7 * 3 * (2 + 8)));
}

TEST_CASE("exponentials are those of the formulas") {
  const auto exponentials = [](SoftmaxWay way) {
    const SoftmaxProblem p = problem(3, 100, 4);
    return predict_softmax(way, p, {.rows = 0, .columns = 10}).tally.exponentials;
  };
  using enum SoftmaxWay;
  CHECK(exponentials(naive) == Count(3 * 200));
  CHECK(exponentials(safe) == Count(3 * 200));
  CHECK(exponentials(online) == Count(3 * 300));
  CHECK(exponentials(fused_top_k) == Count(3 * (200 + 4)));
}

TEST_CASE("several rows fit together, and never more than there are") {
  const auto rows = [](std::int64_t room, std::int64_t all) {
    return rows_on_chip(problem(all, 100, {}), Bytes(room)).value().rows;
  };
  CHECK(rows(199, 50) == 0);
  CHECK(rows(200, 50) == 1);
  CHECK(rows(1000, 50) == 5);
  CHECK(rows(1000, 3) == 3);
  CHECK_FALSE(rows_on_chip(problem(1, 1, {}), Bytes(1)));
}

/// Computes one row of scores as the steps say.
class RowExecutor : public SoftmaxListener {
 public:
  RowExecutor(std::vector<double> x, std::size_t k) : x_(std::move(x)), y_(x_.size(), -1), k_(k) {}

  void kernel(std::string_view name) override { selects_from_y_ = name == "top-k"; }
  void step(const SoftmaxStep& step) override {
    if (step.kind == SoftmaxStep::Kind::load) {
      for (std::int64_t c = step.columns.begin; c < step.columns.end; ++c) loaded_.insert(c);
    }
    if (step.kind == SoftmaxStep::Kind::work) {
      for (std::int64_t c = step.columns.begin; c < step.columns.end; ++c) {
        REQUIRE(loaded_.contains(c));
        work(step.pass, static_cast<std::size_t>(c));
      }
    }
    if (step.kind == SoftmaxStep::Kind::results && !selects_from_y_) {
      for (double& each : largest_) each = std::exp(each - m_) / d_;
    }
  }
  [[nodiscard]] const std::vector<double>& y() const { return y_; }
  [[nodiscard]] const std::vector<double>& largest() const { return largest_; }

 private:
  void work(SoftmaxPass pass, std::size_t c) {
    const double x = x_[c];
    const auto online = [&] {
      const double m = std::max(m_, x);
      d_ = d_ * std::exp(m_ - m) + std::exp(x - m);
      m_ = m;
    };
    switch (pass) {
      case SoftmaxPass::sum:
        m_ = 0;
        d_ += std::exp(x);
        break;
      case SoftmaxPass::maximum: m_ = std::max(m_, x); break;
      case SoftmaxPass::safe_sum: d_ += std::exp(x - m_); break;
      case SoftmaxPass::online: online(); break;
      case SoftmaxPass::normalise: y_[c] = std::exp(x - m_) / d_; break;
      case SoftmaxPass::online_top_k: online(); [[fallthrough]];
      case SoftmaxPass::top_k:
        largest_.push_back(selects_from_y_ ? y_[c] : x);
        std::sort(largest_.rbegin(), largest_.rend());
        if (largest_.size() > k_) largest_.pop_back();
        break;
    }
  }

  std::vector<double> x_, y_, largest_;
  std::size_t k_;
  std::set<std::int64_t> loaded_;
  double m_ = -std::numeric_limits<double>::infinity(), d_ = 0;
  bool selects_from_y_ = false;
};

TEST_CASE("the steps of every way compute a softmax, and the k largest of it") {
  std::vector<double> x;
  for (int c = 0; c < 23; ++c) x.push_back(std::sin(c * 1.7) * 5);
  double sum = 0;
  for (const double each : x) sum += std::exp(each);
  std::vector<double> expected;
  for (const double each : x) expected.push_back(std::exp(each) / sum);
  std::vector<double> sorted = expected;
  std::sort(sorted.rbegin(), sorted.rend());
  const SoftmaxProblem p = problem(1, 23, 4);
  for (const RowsOnChip chip : {RowsOnChip{1, 23}, RowsOnChip{0, 5}, RowsOnChip{0, 1}}) {
    for (const SoftmaxWayFacts& facts : kSoftmaxWays) {
      CAPTURE(facts.name, chip.columns);
      RowExecutor row(x, 4);
      walk_softmax(facts.way, p, chip, row);
      for (std::size_t c = 0; c < x.size() && facts.way != SoftmaxWay::fused_top_k; ++c) {
        REQUIRE(std::fabs(row.y()[c] - expected[c]) < 1e-14);
      }
      REQUIRE(row.largest().size() == (facts.selects ? 4 : 0));
      for (std::size_t n = 0; n < row.largest().size(); ++n) {
        REQUIRE(std::fabs(row.largest()[n] - sorted[n]) < 1e-14);
      }
    }
  }
}

TEST_CASE("a softmax of impossible sizes is refused with the size") {
  const auto message = [](const SoftmaxProblem& p) { return p.validate().value_or(Error{}).message; };
  CHECK(message(problem(1, 1, {})).empty());
  CHECK_FALSE(message(problem(0, 1, {})).empty());
  CHECK_FALSE(message(problem(1, -1, {})).empty());
  CHECK(message(problem(1, 4, 5)) == "top-k is 5, and a row has 4 columns");
  CHECK_FALSE(message(problem(1, 4, 0)).empty());
}

}  // namespace
}  // namespace flashsim
