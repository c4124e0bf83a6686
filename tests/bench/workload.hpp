// The attention that the benchmarks time: its problem, its inputs, and how its work is counted.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/attention/attend.hpp"
#include "core/problem/problem.hpp"

namespace flashsim::bench {

struct Shape {
  std::int64_t heads = 4, seq = 2048, head_dim = 64;
  bool operator==(const Shape&) const = default;
};

template <class T>
Problem problem_of(const Shape& shape, bool causal) {
  return {.batch = 1,
          .heads = shape.heads,
          .kv_heads = shape.heads,
          .seq = shape.seq,
          .kv_seq = shape.seq,
          .head_dim = shape.head_dim,
          .causal = causal,
          .storage = sizeof(T) == 8 ? NumberType::fp64 : NumberType::fp32};
}

/// The count by which libraries are compared, whatever they execute: matrix products of 2 N² d each, two
/// forward and five backward, and half of that under a causal mask.
inline double counted_flops(const Problem& problem, bool backward) {
  const auto n = static_cast<double>(problem.seq);
  const double product = 2 * n * n * static_cast<double>(problem.batch * problem.heads * problem.head_dim);
  return (backward ? 5 : 2) * product * (problem.causal ? 0.5 : 1);
}

/// Q, K, V and dO.
template <class T>
struct Tensors {
  Inputs<T> inputs;
  Tensor4<T> d_o;

  explicit Tensors(const Shape& shape)
      : inputs{.q = like(shape), .k = like(shape), .v = like(shape)}, d_o(like(shape)) {}

  /// In the order in which a file holds them.
  std::vector<Tensor4<T>*> all() { return {&inputs.q, &inputs.k, &inputs.v, &d_o}; }

 private:
  static Tensor4<T> like(const Shape& shape) { return {1, shape.heads, shape.seq, shape.head_dim}; }
};

/// Standard normal numbers, the same at every call.
template <class T>
Tensors<T> drawn_tensors(const Shape& shape) {
  Tensors<T> tensors(shape);
  std::mt19937_64 bits(1);
  std::normal_distribution<T> normal;
  for (Tensor4<T>* tensor : tensors.all()) {
    std::generate(tensor->data().begin(), tensor->data().end(), [&] { return normal(bits); });
  }
  return tensors;
}

/// Seconds that `call` takes; what it returns is dropped after the clock has stopped.
template <class Call>
double seconds_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace flashsim::bench
