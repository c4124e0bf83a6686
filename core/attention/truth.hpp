// The truth that every result is held against: standard attention in float64 with compensated sums,
// written apart from the walks and the executor.
#pragma once

#include "core/attention/attend.hpp"

namespace flashsim {

struct Truth {
  Outputs<double> outputs;
  double largest_score =
      0;  ///< max over visible pairs of |scale| · Σ|q·k|, or of a given |score|, finite ones
  double largest_value = 0;  ///< max |V|, finite ones
};

/// Attention of `inputs`, which have the shapes of `problem`.
Truth truth_of(const Problem& problem, const Inputs<double>& inputs);

}  // namespace flashsim
