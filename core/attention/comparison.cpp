#include "core/attention/comparison.hpp"

#include <cmath>
#include <limits>

namespace flashsim {
namespace {

double difference(double result, double truth) {
  if (std::isnan(result) || std::isnan(truth)) {
    return std::isnan(result) && std::isnan(truth) ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  return result == truth ? 0 : std::fabs(result - truth);
}

/// NaN is worse than infinity, which is worse than any number.
bool worse(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

}  // namespace

template <class T>
Comparison compare(const Tensor4<T>& result, const Tensor4<double>& truth) {
  Comparison comparison;
  for (std::size_t i = 0; i < truth.data().size(); ++i) {
    const double error = difference(static_cast<double>(result.data()[i]), truth.data()[i]);
    if (!worse(error, comparison.max_abs)) continue;
    comparison.max_abs = error;
    const auto flat = static_cast<std::int64_t>(i);
    const std::int64_t row = flat / truth.columns();
    const std::int64_t head = row / truth.rows();
    comparison.at = {.batch = head / truth.heads(),
                     .head = head % truth.heads(),
                     .row = row % truth.rows(),
                     .column = flat % truth.columns()};
  }
  return comparison;
}

template <class T>
Tolerance tolerance_of(const Problem& problem, const Truth& truth, bool scores_given) {
  Tolerance tolerance{.epsilon = std::numeric_limits<T>::epsilon() / 2,
                      .largest_score = truth.largest_score,
                      .largest_value = truth.largest_value};
  const double terms = static_cast<double>(problem.kv_seq);
  const double products =
      scores_given ? 0 : 2 * (static_cast<double>(problem.head_dim) + 2) * tolerance.largest_score;
  const double relative = products + 4 * terms + 16;
  tolerance.output = tolerance.epsilon * tolerance.largest_value * relative;
  tolerance.lse = tolerance.epsilon * (relative + tolerance.largest_score + std::log(terms));
  return tolerance;
}

template Comparison compare(const Tensor4<float>&, const Tensor4<double>&);
template Comparison compare(const Tensor4<double>&, const Tensor4<double>&);
template Tolerance tolerance_of<float>(const Problem&, const Truth&, bool);
template Tolerance tolerance_of<double>(const Problem&, const Truth&, bool);

}  // namespace flashsim
