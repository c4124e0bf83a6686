// Tensors drawn from a seed: the same numbers on every machine, and the same whatever type holds them.
#pragma once

#include <cstdint>
#include <functional>
#include <random>

#include "core/base/tensor.hpp"

namespace flashsim {

/// Uniform in (−magnitude, magnitude).
struct RandomTensors {
  std::uint64_t seed = 0;
  double magnitude = 1;
};

/// Draws every element of a matrix in order, rounded to T.
template <class T>
void draw(std::mt19937_64& generator, double magnitude, MatrixView<T> matrix) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      // 53 bits and a half: uniform in (−1, 1), with the same bits from every standard library.
      const double unit = (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53;
      matrix(row, column) = static_cast<T>(magnitude * (2 * unit - 1));
    }
  }
}

/// Draws every element of a tensor in order. `progress` is told after each matrix how much is done.
template <class T>
void draw(std::mt19937_64& generator, double magnitude, Tensor4<T>& tensor,
          const std::function<void(double)>& progress = {}) {
  const std::int64_t matrices = tensor.batch() * tensor.heads();
  for (std::int64_t i = 0; i < matrices; ++i) {
    draw(generator, magnitude, tensor.matrix(i / tensor.heads(), i % tensor.heads()));
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(matrices));
  }
}

}  // namespace flashsim
