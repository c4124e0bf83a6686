// What softmax by itself moves and computes: counted off its walk, and predicted by a closed form that
// includes none of the walk's code.
#pragma once

#include <vector>

#include "core/account/check.hpp"
#include "core/account/formula.hpp"
#include "core/account/tally.hpp"
#include "core/problem/softmax.hpp"

namespace flashsim {

/// Over all rows.
struct SoftmaxTally {
  Flow input;          ///< x
  Flow output;         ///< y
  Flow results;        ///< the k largest of each row: values and indices
  Count exponentials;  ///< the k of a fused row's results among them
  Count passes;        ///< over a row, on the chip or not
  Count kernels;
  Count steps;  ///< of one row

  [[nodiscard]] Flow total() const;
  [[nodiscard]] bool overflowed() const;
};

/// Every figure, named as a path: "input.read_bytes".
std::vector<Figure> figures_of(const SoftmaxTally& tally);

/// Every figure on which the two differ.
std::vector<Discrepancy> discrepancies(const SoftmaxTally& predicted, const SoftmaxTally& counted);

/// What the walk of every row comes to.
SoftmaxTally count_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip);

struct SoftmaxPrediction {
  SoftmaxTally tally;
  Formula read = 0;     ///< bytes out of HBM
  Formula written = 0;  ///< bytes into it
};

/// The closed form.
SoftmaxPrediction predict_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip);

}  // namespace flashsim
