#include "core/account/formula.hpp"

#include <utility>

#include <fmt/format.h>

namespace flashsim {

Formula::Formula(std::string symbol, Count value) : symbols_(std::move(symbol)), value_(value) {}

Formula Formula::unexplained(Count value) {
  Formula formula(0);
  formula.value_ = value;
  formula.explained_ = false;
  return formula;
}

std::string Formula::numbers() const {
  return numbers_.empty() ? fmt::format("{}", value_.value()) : numbers_;
}

std::string Formula::as_factor(const std::string& text) const { return is_sum_ ? "(" + text + ")" : text; }

Formula Formula::joined(const Formula& a, const Formula& b, Join join, Count value) {
  Formula result = unexplained(value);
  if (!a.explained_ || !b.explained_) return result;
  result.explained_ = true;
  result.is_sum_ = join != Join::product;
  switch (join) {
    case Join::sum:
      result.symbols_ = a.symbols() + " + " + b.symbols();
      result.numbers_ = a.numbers() + " + " + b.numbers();
      break;
    case Join::difference:
      result.symbols_ = a.symbols() + " − " + b.as_factor(b.symbols());
      result.numbers_ = a.numbers() + " − " + b.as_factor(b.numbers());
      break;
    case Join::product:
      result.symbols_ = a.as_factor(a.symbols()) + "·" + b.as_factor(b.symbols());
      result.numbers_ = a.as_factor(a.numbers()) + " · " + b.as_factor(b.numbers());
      break;
  }
  return result;
}

Formula operator+(const Formula& a, const Formula& b) {
  return Formula::joined(a, b, Formula::Join::sum, a.value_ + b.value_);
}

Formula operator-(const Formula& a, const Formula& b) {
  return Formula::joined(a, b, Formula::Join::difference, a.value_ - b.value_);
}

Formula operator*(const Formula& a, const Formula& b) {
  return Formula::joined(a, b, Formula::Join::product, a.value_ * b.value_);
}

}  // namespace flashsim
