// A real number that knows how it was computed: its value, the formula in symbols, and the same formula
// with the numbers put in. One expression builds all three.
#pragma once

#include <string>

namespace flashsim {

class RealFormula {
 public:
  RealFormula() : RealFormula(0) {}
  /// A constant, which stands for itself.
  RealFormula(double constant);
  /// A named quantity: RealFormula("ε", 0x1p-24).
  RealFormula(std::string symbol, double value);

  /// Adding 0 or multiplying by 1, as constants, leaves no trace.
  friend RealFormula operator+(const RealFormula& a, const RealFormula& b);
  friend RealFormula operator*(const RealFormula& a, const RealFormula& b);

  [[nodiscard]] double value() const { return value_; }
  /// "ε·(d + 5)·A"
  [[nodiscard]] const std::string& symbols() const { return symbols_; }
  /// "5.96e-08 · (128 + 5) · 7.21"
  [[nodiscard]] const std::string& numbers() const { return numbers_; }

 private:
  RealFormula(std::string symbols, std::string numbers, double value, bool is_sum);
  [[nodiscard]] bool is_constant(double value) const;

  std::string symbols_;
  std::string numbers_;
  double value_ = 0;
  bool is_sum_ = false;  // needs parentheses as a factor
  bool is_constant_ = false;
};

}  // namespace flashsim
