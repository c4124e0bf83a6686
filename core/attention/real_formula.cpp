#include "core/attention/real_formula.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// Whole numbers as they are, others with three digits.
std::string number_text(double value) {
  if (std::floor(value) == value && std::fabs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

std::string in_parentheses(const std::string& text, bool needed) {
  return needed ? fmt::format("({})", text) : text;
}

}  // namespace

RealFormula::RealFormula(double constant)
    : symbols_(number_text(constant)), numbers_(symbols_), value_(constant), is_constant_(true) {}

RealFormula::RealFormula(std::string symbol, double value)
    : symbols_(std::move(symbol)), numbers_(number_text(value)), value_(value) {}

RealFormula::RealFormula(std::string symbols, std::string numbers, double value, bool is_sum)
    : symbols_(std::move(symbols)), numbers_(std::move(numbers)), value_(value), is_sum_(is_sum) {}

bool RealFormula::is_constant(double value) const { return is_constant_ && value_ == value; }

RealFormula operator+(const RealFormula& a, const RealFormula& b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  return {fmt::format("{} + {}", a.symbols_, b.symbols_), fmt::format("{} + {}", a.numbers_, b.numbers_),
          a.value_ + b.value_, true};
}

RealFormula operator*(const RealFormula& a, const RealFormula& b) {
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (b.is_constant(0) || a.is_constant(1)) return b;
  return {
      fmt::format("{}·{}", in_parentheses(a.symbols_, a.is_sum_), in_parentheses(b.symbols_, b.is_sum_)),
      fmt::format("{} · {}", in_parentheses(a.numbers_, a.is_sum_), in_parentheses(b.numbers_, b.is_sum_)),
      a.value_ * b.value_, false};
}

}  // namespace flashsim
