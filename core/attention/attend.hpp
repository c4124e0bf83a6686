// Attention over all batch entries and heads: one executor a head, the same walk for each.
#pragma once

#include "core/attention/switches.hpp"
#include "core/base/tensor.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"
#include "core/schedule/chip_values.hpp"

namespace flashsim {

/// Q: [B, H, N, d], K, V: [B, Hkv, Nkv, d]. Where `scores` [B, H, N, Nkv] has elements, they are taken as
/// given and q and k may be empty.
template <class T>
struct Inputs {
  Tensor4<T> q, k, v;
  Tensor4<T> scores;
  [[nodiscard]] bool scores_given() const { return !scores.data().empty(); }
};

/// O: [B, H, N, d], L: [B, H, N, 1].
template <class T>
struct Outputs {
  Tensor4<T> o, lse;
};

/// Executes `algorithm` in T = float or double, sums and statistics in T as well. The inputs have the
/// shapes of `problem`, which is valid. Tells `observer`, where there is one, every step.
template <class T>
Outputs<T> attend(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                  const Inputs<T>& inputs, StepObserver* observer = nullptr);

/// The inputs rounded to another type.
template <class To, class From>
Inputs<To> converted(const Inputs<From>& inputs);

}  // namespace flashsim
