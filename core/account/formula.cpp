#include "core/account/formula.hpp"

#include <utility>

#include <fmt/format.h>

namespace flashsim {

Formula::Formula(std::string symbol, Count value)
    : symbols_(std::move(symbol)), numbers_(fmt::format("{}", value.value())), value_(value) {}

Formula::Formula(std::int64_t constant)
    : symbols_(fmt::format("{}", constant)), numbers_(symbols_), value_(constant) {}

Formula::Formula(std::string symbols, std::string numbers, Count value, bool is_sum)
    : symbols_(std::move(symbols)), numbers_(std::move(numbers)), value_(value), is_sum_(is_sum) {}

std::string Formula::symbols_as_factor() const { return is_sum_ ? "(" + symbols_ + ")" : symbols_; }
std::string Formula::numbers_as_factor() const { return is_sum_ ? "(" + numbers_ + ")" : numbers_; }

Formula operator+(const Formula& a, const Formula& b) {
  return {a.symbols_ + " + " + b.symbols_, a.numbers_ + " + " + b.numbers_, a.value_ + b.value_, true};
}

Formula operator-(const Formula& a, const Formula& b) {
  return {a.symbols_ + " − " + b.symbols_as_factor(), a.numbers_ + " − " + b.numbers_as_factor(),
          a.value_ - b.value_, true};
}

Formula operator*(const Formula& a, const Formula& b) {
  return {a.symbols_as_factor() + "·" + b.symbols_as_factor(),
          a.numbers_as_factor() + " · " + b.numbers_as_factor(), a.value_ * b.value_, false};
}

}  // namespace flashsim
