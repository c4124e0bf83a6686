// A result verified: its rows, or a sample of them, held against the truth within the tolerance of the run.
#pragma once

#include <optional>

#include "core/attention/comparison.hpp"
#include "core/attention/row_sample.hpp"
#include "core/attention/tensors.hpp"
#include "core/attention/tolerance.hpp"
#include "core/attention/verdict.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"

namespace flashsim {

/// How much truth is computed, counted as (query, key) pairs × d. The default takes about two seconds on
/// two cores; infinity checks every row.
struct VerificationBudget {
  double products = 1.5e9;
};

/// O and L held against the truth.
struct Verification {
  RowSample sample;  ///< the query rows that were checked; sample.whole(): all of them
  Tolerance tolerance;
  Comparison output;  ///< its rows are the rows checked
  Comparison lse;
  bool broken = false;  ///< by the switches

  [[nodiscard]] bool agrees() const { return output.agrees() && lse.agrees(); }
  /// Agreement proves nothing: the tolerance is as large as O itself.
  [[nodiscard]] bool says_nothing() const { return tolerance.output_says_nothing(); }
  [[nodiscard]] Verdict verdict() const { return verdict_of(agrees(), says_nothing(), broken); }
  /// Rows with a wrong element of O or L.
  [[nodiscard]] std::int64_t wrong_rows() const;
  /// The first of them.
  [[nodiscard]] std::optional<RowPlace> first_wrong_row() const;
};

/// Verifies `outputs` of `method`, computed in T from `inputs`, which hold what the storage type can hold.
/// The tolerance is that of the right algorithm, whatever `switches` break; the truth is that of its pattern.
template <class T>
Verification verify(const Problem& problem, const Method& method, const Switches& switches,
                    const Inputs<T>& inputs, const Outputs<T>& outputs, const VerificationBudget& budget = {},
                    int threads = 1);

/// The same of an algorithm that has nothing to choose but its tiles.
template <class T>
Verification verify(Algorithm algorithm, const Problem& problem, Tiling tiling, const Switches& switches,
                    const Inputs<T>& inputs, const Outputs<T>& outputs, const VerificationBudget& budget = {},
                    int threads = 1) {
  return verify<T>(problem, Method{.algorithm = algorithm, .tiling = tiling}, switches, inputs, outputs,
                   budget, threads);
}

/// dQ, dK and dV held against the truth.
struct GradientVerification {
  RowSample queries;  ///< rows of dQ that were checked
  RowSample keys;     ///< rows of dK and dV that were checked; where there are none, keys.note says why
  Tolerance tolerance;
  Comparison dq, dk, dv;
  bool broken = false;  ///< by the switches

  [[nodiscard]] bool agrees() const { return dq.agrees() && dk.agrees() && dv.agrees(); }
  /// Agreement of one of the three proves nothing.
  [[nodiscard]] bool says_nothing() const;
  [[nodiscard]] Verdict verdict() const { return verdict_of(agrees(), says_nothing(), broken); }
};

/// Verifies the gradients of Σ dO ∘ O that `algorithm` computed in T. dO: [B, H, N, d].
template <class T>
GradientVerification verify_gradients(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                      const Switches& switches, const Inputs<T>& inputs,
                                      const Tensor4<T>& d_o, const Gradients<T>& gradients,
                                      const VerificationBudget& budget = {}, int threads = 1);

}  // namespace flashsim
