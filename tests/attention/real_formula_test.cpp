#include "core/attention/real_formula.hpp"

#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("a formula has the value, the symbols and the numbers of one expression") {
  const RealFormula eps("ε", 0x1p-24);
  const RealFormula d("d", 64);
  const RealFormula bound = RealFormula(2) * eps * (d + 5) * RealFormula("A", 7.21);
  CHECK(bound.value() == 2 * 0x1p-24 * 69 * 7.21);
  CHECK(bound.symbols() == "2·ε·(d + 5)·A");
  CHECK(bound.numbers() == "2 · 5.96e-08 · (64 + 5) · 7.21");
}

TEST_CASE("nothing added and nothing multiplied leave no trace") {
  const RealFormula a("a", 3);
  CHECK((a + 0).symbols() == "a");
  CHECK((0 + a).numbers() == "3");
  CHECK((a * 1).symbols() == "a");
  CHECK((a * 0).symbols() == "0");
  CHECK((a * 0).value() == 0);
  CHECK((RealFormula("b", 0) + a).symbols() == "b + a");
  CHECK(RealFormula().value() == 0);
}

}  // namespace
}  // namespace flashsim
