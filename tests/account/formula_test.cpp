#include "core/account/formula.hpp"

#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "core/account/check.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

/// Works out a formula's numbers, "2 · (3 + 4) − 1", by the rules of arithmetic.
class Calculator {
 public:
  static Count value_of(std::string_view text) {
    Calculator calculator(text);
    const Count value = calculator.sum();
    calculator.skip_spaces();
    return calculator.rest_.empty() ? value : Count::overflow();
  }

 private:
  explicit Calculator(std::string_view text) : rest_(text) {}

  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool take(std::string_view sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  Count sum() {
    Count value = product();
    while (true) {
      if (take("+"))
        value = value + product();
      else if (take("−"))
        value = value - product();
      else
        return value;
    }
  }
  Count product() {
    Count value = factor();
    while (take("·")) value = value * factor();
    return value;
  }
  Count factor() {
    if (take("(")) {
      const Count value = sum();
      return take(")") ? value : Count::overflow();
    }
    skip_spaces();
    std::int64_t number = 0;
    if (rest_.empty() || std::isdigit(static_cast<unsigned char>(rest_[0])) == 0) return Count::overflow();
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0])) != 0) {
      number = number * 10 + (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return number;
  }

  std::string_view rest_;
};

TEST_CASE("a formula carries its symbols, its numbers and its value") {
  const Formula f = Formula(2) * Formula("N", 8192) * Formula("d", 128);
  CHECK(f.symbols() == "2·N·d");
  CHECK(f.numbers() == "2 · 8192 · 128");
  CHECK(f.value() == Count(2097152));
}

TEST_CASE("a sum is set in parentheses where it is a factor or is taken away, and nowhere else") {
  const Formula a("a", 10), b("b", 2), c("c", 3);
  CHECK((a + b * c).symbols() == "a + b·c");
  CHECK(((a + b) * c).symbols() == "(a + b)·c");
  CHECK((c * (a - b)).numbers() == "3 · (10 − 2)");
  CHECK((a - (b + c)).symbols() == "a − (b + c)");
  CHECK((a - (b + c)).numbers() == "10 − (2 + 3)");
  CHECK((a - (b + c)).value() == Count(5));
  CHECK(((a + b) + c).symbols() == "a + b + c");
  CHECK(((a + b) * (a - c)).numbers() == "(10 + 2) · (10 − 3)");
}

TEST_CASE("a formula that leaves 64 bits is overflowed") {
  const Formula n("N", std::int64_t{1} << 40);
  CHECK((n * n).value().overflowed());
  CHECK((Formula(1) - Formula(2)).value().overflowed());
}

TEST_CASE("what is made of an unexplained quantity has the value and no texts of its own") {
  const Formula n("N", 5);
  const Formula silent = Formula::unexplained(3);
  for (const Formula& made : {n * silent + Formula(1), silent - Formula(2), (n - silent) * n}) {
    CHECK(made.symbols() == std::to_string(made.value().value()));
    CHECK(made.numbers() == made.symbols());
  }
  CHECK((n * silent + Formula(1)).value() == Count(16));
}

TEST_CASE("without explanations the figures are the same") {
  test::RandomShapes shapes(8);
  for (int n = 0; n < 200; ++n) {
    const test::Shape shape = shapes.next(40);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      const Method method{.algorithm = facts.algorithm,
                          .tiling = shape.tiling,
                          .splits = facts.algorithm == Algorithm::split_kv ? 3 : 1};
      const Prediction with = predict(shape.problem, method);
      const Prediction without = predict_unexplained(shape.problem, method);
      CAPTURE(facts.name, text_of(shape));
      REQUIRE(discrepancies(with.tally, without.tally).empty());
      REQUIRE(without.explanations.empty());
      REQUIRE(without.intermediate.size() == with.intermediate.size());
    }
  }
}

TEST_CASE("the numbers of every explanation work out to its value") {
  test::RandomShapes shapes(6);
  for (int n = 0; n < 200; ++n) {
    const test::Shape shape = shapes.next(40);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      for (const Explanation& e : predict(facts.algorithm, shape.problem, shape.tiling).explanations) {
        CAPTURE(facts.name, text_of(shape), e.figure, e.symbols, e.numbers);
        REQUIRE_FALSE(e.value.overflowed());
        REQUIRE(Calculator::value_of(e.numbers) == e.value);
      }
    }
  }
}

TEST_CASE(
    "what is explained of a figure adds up to the figure, and every figure of HBM traffic is explained") {
  test::RandomShapes shapes(7);
  for (int n = 0; n < 200; ++n) {
    const test::Shape shape = shapes.next(40);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      const Prediction prediction = predict(facts.algorithm, shape.problem, shape.tiling);
      std::map<std::string, Count> explained;
      for (const Explanation& e : prediction.explanations) explained[e.figure] += e.value;
      std::map<std::string, Count> figures;
      for (const Figure& figure : figures_of(prediction.tally)) figures[figure.name] = figure.value;
      CAPTURE(facts.name, text_of(shape));
      for (const auto& [name, value] : explained) {
        CAPTURE(name);
        REQUIRE(figures.contains(name));
        REQUIRE(figures[name] == value);
      }
      for (const auto& [name, value] : figures) {
        CAPTURE(name);
        if (name.starts_with("hbm.") && !name.starts_with("hbm.total") && value != Count(0)) {
          REQUIRE(explained.contains(name));
        }
      }
    }
  }
}

TEST_CASE("the paper's and the exact FLOPs are explained by their own formulas") {
  const ProblemFlops flops = problem_flops(Problem{});
  CHECK(flops.paper.symbols() == "2·B·H·N·Nkv·d");
  CHECK(Calculator::value_of(flops.paper.numbers()) == flops.paper.value());
  CHECK(Calculator::value_of(flops.exact.numbers()) == flops.exact.value());
}

}  // namespace
}  // namespace flashsim
