// A number that knows how it was computed: its value, the formula in symbols, and the same formula
// with the numbers put in. Value and explanation can't differ, because one expression builds both.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/count.hpp"

namespace flashsim {

class Formula {
 public:
  /// A named quantity: Formula("Nkv", 8192).
  Formula(std::string symbol, Count value);
  /// A constant, which stands for itself.
  Formula(std::int64_t constant);

  friend Formula operator+(const Formula& a, const Formula& b);
  friend Formula operator-(const Formula& a, const Formula& b);
  friend Formula operator*(const Formula& a, const Formula& b);

  [[nodiscard]] Count value() const { return value_; }
  /// "2·B·H·N·d·e"
  [[nodiscard]] const std::string& symbols() const { return symbols_; }
  /// "2 · 1 · 32 · 8192 · 128 · 2"
  [[nodiscard]] const std::string& numbers() const { return numbers_; }

 private:
  Formula(std::string symbols, std::string numbers, Count value, bool is_sum);
  [[nodiscard]] std::string symbols_as_factor() const;
  [[nodiscard]] std::string numbers_as_factor() const;

  std::string symbols_;
  std::string numbers_;
  Count value_;
  bool is_sum_ = false;  // needs parentheses as a factor
};

}  // namespace flashsim
