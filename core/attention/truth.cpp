#include "core/attention/truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

/// Neumaier's sum: the rounding error of each addition is kept and added at the end. Once the sum isn't
/// finite the error has no meaning and is left out.
class CompensatedSum {
 public:
  void add(double value) {
    const double sum = sum_ + value;
    lost_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  [[nodiscard]] double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

void widen(double& largest, double value) {
  const double size = std::fabs(value);
  if (std::isfinite(size)) largest = std::max(largest, size);
}

/// Scores of one row over its visible keys.
std::vector<double> row_scores(const Problem& problem, const Inputs<double>& inputs, std::int64_t b,
                               std::int64_t h, std::int64_t row, double& largest) {
  std::vector<double> scores(static_cast<std::size_t>(visible_keys(problem, row)));
  for (std::size_t key = 0; key < scores.size(); ++key) {
    const auto at = static_cast<std::int64_t>(key);
    if (inputs.scores_given()) {
      scores[key] = inputs.scores.matrix(b, h)(row, at);
      widen(largest, scores[key]);
      continue;
    }
    const auto q = inputs.q.matrix(b, h);
    const auto k = inputs.k.matrix(b, problem.kv_head_of(h));
    CompensatedSum dot;
    double size = 0;
    for (std::int64_t x = 0; x < problem.head_dim; ++x) {
      dot.add(q(row, x) * k(at, x));
      size += std::fabs(q(row, x) * k(at, x));
    }
    scores[key] = problem.score_scale() * dot.value();
    widen(largest, problem.score_scale() * size);
  }
  return scores;
}

void attend_row(const Problem& problem, const Inputs<double>& inputs, std::int64_t b, std::int64_t h,
                std::int64_t row, Truth& truth) {
  std::vector<double> weights = row_scores(problem, inputs, b, h, row, truth.largest_score);
  double maximum = -std::numeric_limits<double>::infinity();
  bool empty = true;
  for (const double score : weights) {
    maximum = score > maximum ? score : maximum;
    empty = empty && score == -std::numeric_limits<double>::infinity();
  }
  const auto o = truth.outputs.o.matrix(b, h);
  const auto lse = truth.outputs.lse.matrix(b, h);
  if (empty) {
    lse(row, 0) = -std::numeric_limits<double>::infinity();
    return;
  }
  // A score of −∞ masks its key: it has no weight, and its value is not looked at.
  const std::vector<double> scores = weights;
  CompensatedSum total;
  for (double& weight : weights) {
    weight = std::exp(weight - maximum);
    total.add(weight);
  }
  lse(row, 0) = maximum + std::log(total.value());
  const auto v = inputs.v.matrix(b, problem.kv_head_of(h));
  for (std::int64_t x = 0; x < problem.head_dim; ++x) {
    CompensatedSum sum;
    for (std::size_t key = 0; key < weights.size(); ++key) {
      if (scores[key] == -std::numeric_limits<double>::infinity()) continue;
      sum.add(weights[key] * v(static_cast<std::int64_t>(key), x));
    }
    o(row, x) = sum.value() / total.value();
  }
}

}  // namespace

Truth truth_of(const Problem& problem, const Inputs<double>& inputs) {
  Truth truth{.outputs = {Tensor4<double>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                          Tensor4<double>(problem.batch, problem.heads, problem.seq, 1)}};
  for (const double value : inputs.v.data()) widen(truth.largest_value, value);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t row = 0; row < problem.seq; ++row) attend_row(problem, inputs, b, h, row, truth);
    }
  }
  return truth;
}

}  // namespace flashsim
