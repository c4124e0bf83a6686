// The truth that every result is held against: standard attention in float64 with compensated sums,
// written apart from the walks and the executor. Of all rows or of some, with the same bits.
//
//   S = scale · Q Kᵀ    P = softmax(S)    O = P V    L = ln Σ exp S
//
// A masked key isn't looked at, whether the causal mask or a pattern of blocks hides it, and a score of −∞
// masks its key. A row without a score above −∞ has O = 0 and L = −∞. NaN or +∞ in a visible score makes its
// row NaN.
#pragma once

#include "core/attention/magnitudes.hpp"
#include "core/attention/row_sample.hpp"
#include "core/attention/tensors.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

class BlockPattern;

struct Truth {
  RowSample sample;
  /// Row number k of O and L, counted through the tensor, is the row sample.rows[k]: of all rows they are
  /// [B, H, N, d] and [B, H, N, 1], of some [1, 1, rows, d] and [1, 1, rows, 1].
  Outputs<double> outputs;
  Magnitudes magnitudes;
};

/// Attention of `inputs`, in float or double, which have the shapes of `problem`: the query rows `sample`,
/// in ascending order, under `pattern` where there is one. The number of threads changes no bit.
template <class T>
Truth truth_of(const Problem& problem, const Inputs<T>& inputs, RowSample sample, int threads = 1,
               const BlockPattern* pattern = nullptr);

/// All rows.
template <class T>
Truth truth_of(const Problem& problem, const Inputs<T>& inputs, int threads = 1) {
  return truth_of(problem, inputs, all_query_rows(problem), threads);
}

}  // namespace flashsim
