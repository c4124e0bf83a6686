#include "core/attention/verification.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/attention/true_gradients.hpp"
#include "core/attention/truth.hpp"
#include "core/base/rounding.hpp"

namespace flashsim {
namespace {

template <class T>
constexpr NumberType compute_type() {
  return sizeof(T) == sizeof(float) ? NumberType::fp32 : NumberType::fp64;
}

/// The type that O and the gradients are rounded to.
template <class T>
NumberType stored_type(const Problem& problem) {
  return is_narrower<T>(problem.storage) ? problem.storage : compute_type<T>();
}

std::optional<RowPlace> row_of(const Comparison& comparison) {
  if (!comparison.first_wrong) return std::nullopt;
  const Place& at = comparison.first_wrong->at;
  return RowPlace{at.batch, at.head, at.row};
}

}  // namespace

std::int64_t Verification::wrong_rows() const {
  std::vector<std::int64_t> both;
  std::set_union(output.wrong.begin(), output.wrong.end(), lse.wrong.begin(), lse.wrong.end(),
                 std::back_inserter(both));
  return static_cast<std::int64_t>(both.size());
}

std::optional<RowPlace> Verification::first_wrong_row() const {
  const auto of_output = row_of(output);
  const auto of_lse = row_of(lse);
  if (!of_output || !of_lse) return of_output ? of_output : of_lse;
  return *of_output < *of_lse ? of_output : of_lse;
}

bool GradientVerification::says_nothing() const {
  return tolerance.dq_says_nothing() || tolerance.dk_says_nothing() || tolerance.dv_says_nothing();
}

template <class T>
Verification verify(const Problem& problem, const Method& method, const Switches& switches,
                    const Inputs<T>& inputs, const Outputs<T>& outputs, const VerificationBudget& budget,
                    int threads) {
  const BlockPattern* pattern = method.pattern.get();
  Tiling tiling = method.tiling;
  if (method.algorithm == Algorithm::split_kv) {
    // The queries of a packed tile.
    tiling.query_rows = std::max<std::int64_t>(tiling.query_rows / (problem.heads / problem.kv_heads), 1);
  }
  Truth truth = truth_of(problem, inputs, sample_query_rows(problem, tiling, budget.products, pattern),
                         threads, pattern);
  Verification verification{
      .tolerance = tolerance_of<T>(problem, method, truth.magnitudes, inputs.scores_given()),
      .broken = switches.broken()};
  const Tolerance& tolerance = verification.tolerance;
  verification.output =
      compare(outputs.o, truth.sample, truth.outputs.o, stored_type<T>(problem), tolerance.output.value());
  verification.lse =
      compare(outputs.lse, truth.sample, truth.outputs.lse, compute_type<T>(), tolerance.lse.value());
  verification.sample = std::move(truth.sample);
  return verification;
}

template <class T>
GradientVerification verify_gradients(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                      const Switches& switches, const Inputs<T>& inputs,
                                      const Tensor4<T>& d_o, const Gradients<T>& gradients,
                                      const VerificationBudget& budget, int threads) {
  // A pair costs a row two products more than forward, and a key about as much.
  const double products = budget.products / 4;
  TrueGradients truth = true_gradients(problem, inputs, d_o, sample_query_rows(problem, tiling, products),
                                       sample_key_rows(problem, products), threads);
  GradientVerification verification{
      .tolerance = gradient_tolerance_of<T>(algorithm, problem, tiling, truth.magnitudes),
      .broken = switches.broken()};
  const Tolerance& tolerance = verification.tolerance;
  const NumberType stored = stored_type<T>(problem);
  const Gradients<double>& expected = truth.gradients;
  verification.dq = compare(gradients.dq, truth.queries, expected.dq, stored, tolerance.dq.value());
  verification.dk = compare(gradients.dk, truth.keys, expected.dk, stored, tolerance.dk.value());
  verification.dv = compare(gradients.dv, truth.keys, expected.dv, stored, tolerance.dv.value());
  verification.queries = std::move(truth.queries);
  verification.keys = std::move(truth.keys);
  return verification;
}

template Verification verify(const Problem&, const Method&, const Switches&, const Inputs<float>&,
                             const Outputs<float>&, const VerificationBudget&, int);
template Verification verify(const Problem&, const Method&, const Switches&, const Inputs<double>&,
                             const Outputs<double>&, const VerificationBudget&, int);
template GradientVerification verify_gradients(Algorithm, const Problem&, Tiling, const Switches&,
                                               const Inputs<float>&, const Tensor4<float>&,
                                               const Gradients<float>&, const VerificationBudget&, int);
template GradientVerification verify_gradients(Algorithm, const Problem&, Tiling, const Switches&,
                                               const Inputs<double>&, const Tensor4<double>&,
                                               const Gradients<double>&, const VerificationBudget&, int);

}  // namespace flashsim
