// A number that knows how it was computed: its value, the formula in symbols, and the same formula
// with the numbers put in. Value and explanation can't differ, because one expression builds both.
// Where only values are wanted, unexplained quantities leave out the texts and nothing else.
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
  Formula(std::int64_t constant) : value_(constant) {}
  /// A quantity whose formula nobody reads: it, and whatever is made of it, has a value alone.
  static Formula unexplained(Count value);

  friend Formula operator+(const Formula& a, const Formula& b);
  friend Formula operator-(const Formula& a, const Formula& b);
  friend Formula operator*(const Formula& a, const Formula& b);

  [[nodiscard]] Count value() const { return value_; }
  /// "2·B·H·N·d·e"
  [[nodiscard]] std::string symbols() const { return symbols_.empty() ? numbers() : symbols_; }
  /// "2 · 1 · 32 · 8192 · 128 · 2"
  [[nodiscard]] std::string numbers() const;

 private:
  enum class Join { sum, difference, product };
  /// What `value` is called as `a` and `b` joined.
  static Formula joined(const Formula& a, const Formula& b, Join join, Count value);
  [[nodiscard]] std::string as_factor(const std::string& text) const;

  std::string symbols_;  // empty for a constant
  std::string numbers_;  // empty for a quantity, whose number is its value
  Count value_;
  bool is_sum_ = false;  // needs parentheses as a factor
  bool explained_ = true;
};

}  // namespace flashsim
