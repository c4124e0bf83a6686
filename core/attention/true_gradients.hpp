// The true gradients of Σ dO ∘ O in float64 with compensated sums, of all rows or of some:
//
//   dP = dO Vᵀ    D_i = Σ_j P_ij dP_ij    dS = P ∘ (dP − D)
//   dQ = scale · dS K    dK = scale · dSᵀ Q    dV = Pᵀ dO
//
// P is that of the truth, and never of a stored L. dK and dV are sums over the query heads of a group.
#pragma once

#include "core/attention/magnitudes.hpp"
#include "core/attention/row_sample.hpp"
#include "core/attention/tensors.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

struct TrueGradients {
  RowSample queries;  ///< of dQ
  RowSample keys;     ///< of dK and dV
  /// Row number k of dQ is queries.rows[k], of dK and dV keys.rows[k]: of all rows they have the shapes of
  /// Q, K and V, of some [1, 1, rows, d].
  Gradients<double> gradients;
  Magnitudes magnitudes;  ///< of every row that was needed
};

/// dO: [B, H, N, d]. Scores may not be given. The number of threads changes no bit.
template <class T>
TrueGradients true_gradients(const Problem& problem, const Inputs<T>& inputs, const Tensor4<T>& d_o,
                             RowSample queries, RowSample keys, int threads = 1);

/// All rows and keys.
template <class T>
TrueGradients true_gradients(const Problem& problem, const Inputs<T>& inputs, const Tensor4<T>& d_o,
                             int threads = 1) {
  return true_gradients(problem, inputs, d_o, all_query_rows(problem), all_key_rows(problem), threads);
}

}  // namespace flashsim
