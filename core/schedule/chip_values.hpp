// What lies on the chip while a walk is executed, for those who watch: the executor shows it, the
// recorder keeps it, and neither knows the other.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/schedule/step.hpp"

namespace flashsim {

enum class ChipValue {
  Q,         ///< query tile [rows, d]
  K,         ///< key tile [keys, d]
  V,         ///< value tile [keys, d]
  S,         ///< scores [rows, keys]
  P,         ///< exponentials or probabilities [rows, keys]
  O,         ///< output accumulator [rows, d]
  m_before,  ///< running maximum before this tile [rows, 1]
  m,         ///< running maximum [rows, 1]
  row_sum,   ///< sum of this tile's exponentials [rows, 1]
  r,         ///< rescale factor exp(m_before − m) [rows, 1]
  l_before,  ///< denominator before this tile [rows, 1]
  l,         ///< denominator [rows, 1]
  L,         ///< logsumexp [rows, 1]
};

constexpr std::string_view name_of(ChipValue value) {
  constexpr std::array<std::string_view, 13> kNames{"Q", "K",       "V", "S",        "P", "O", "m_before",
                                                    "m", "row_sum", "r", "l_before", "l", "L"};
  return kNames[static_cast<std::size_t>(value)];
}

/// Numbers [rows, columns], row-major.
struct NumberMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> numbers;
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return numbers[static_cast<std::size_t>(row * columns + column)];
  }
};

/// The chip as it stands after the last step.
class ChipValues {
 public:
  virtual ~ChipValues() = default;
  [[nodiscard]] virtual NumberMatrix read(ChipValue value) const = 0;
};

/// One who watches an execution.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// The walk of a head starts.
  virtual void begin_head(std::int64_t batch, std::int64_t head) = 0;
  /// `step` has been executed and `chip` is what it left.
  virtual void executed(const Step& step, const ChipValues& chip) = 0;
};

}  // namespace flashsim
