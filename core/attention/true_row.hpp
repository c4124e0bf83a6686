// One row of the truth: its scores, and its weights against their maximum. What the true output and the true
// gradients both start from.
#pragma once

#include <vector>

#include "core/attention/magnitudes.hpp"
#include "core/attention/row_sample.hpp"
#include "core/attention/tensors.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

class BlockPattern;

struct TrueRow {
  std::vector<double> scores;  ///< over the keys that the causal mask leaves; −∞ where a pattern hides one
  std::vector<double> weights;  ///< exp(s − maximum); without meaning where the row is empty
  double maximum = 0;
  double total = 0;   ///< Σ weights
  bool empty = true;  ///< no score above −∞, and no NaN
};

/// Fills `row` with the row at `place`, and widens `magnitudes` by its scores. A key that `pattern` hides
/// isn't looked at.
template <class T>
void weigh(const Problem& problem, const Inputs<T>& inputs, const RowPlace& place, TrueRow& row,
           Magnitudes& magnitudes, const BlockPattern* pattern = nullptr);

/// The key takes no part: the mask hides it, or a score of −∞.
bool is_masked(double score);

/// largest ← max(largest, |value|), where that is finite.
void widen(double& largest, double value);

}  // namespace flashsim
