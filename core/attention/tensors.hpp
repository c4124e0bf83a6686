// The tensors that go into attention and come out of it.
#pragma once

#include "core/base/tensor.hpp"

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

/// dQ: [B, H, N, d], dK, dV: [B, Hkv, Nkv, d], summed over the query heads of a group.
template <class T>
struct Gradients {
  Tensor4<T> dq, dk, dv;
};

/// The inputs, each element rounded to another type.
template <class To, class From>
Inputs<To> converted(const Inputs<From>& inputs) {
  return {converted_tensor<To>(inputs.q), converted_tensor<To>(inputs.k), converted_tensor<To>(inputs.v),
          converted_tensor<To>(inputs.scores)};
}

}  // namespace flashsim
