// What results are held against: the comparison, the tolerance and the truth.
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_products;
using test::given_scores;
using test::kInfinity;
using test::kNaN;
using test::matrix;

Comparison compared(std::vector<double> result, std::vector<double> truth) {
  const auto n = static_cast<std::int64_t>(result.size());
  return compare(matrix(n, 1, std::move(result)), matrix(n, 1, std::move(truth)));
}

TEST_CASE("equal tensors differ by nothing, whatever they hold") {
  const Comparison same =
      compared({1, -2, kNaN, kInfinity, -kInfinity, 0.0}, {1, -2, kNaN, kInfinity, -kInfinity, -0.0});
  CHECK(same.max_abs == 0);
  CHECK(same.agrees_within(0));
}

TEST_CASE("the largest difference and its row are found") {
  const Comparison found = compared({1, 2, 3, 4}, {1.25, 2, 2, 4.5});
  CHECK(found.max_abs == 1);
  CHECK(found.at.row == 2);
  CHECK(found.agrees_within(1));
  CHECK_FALSE(found.agrees_within(0.999));
}

TEST_CASE("infinity against anything else is infinitely wrong") {
  CHECK(compared({kInfinity}, {1}).max_abs == kInfinity);
  CHECK(compared({1}, {-kInfinity}).max_abs == kInfinity);
  CHECK(compared({kInfinity}, {-kInfinity}).max_abs == kInfinity);
  CHECK_FALSE(compared({kInfinity}, {1}).agrees_within(1e308));
  CHECK(compared({1, kInfinity, 9}, {1, 0, 0}).at.row == 1);
}

TEST_CASE("NaN against a number is the worst error there is") {
  for (const double other : {0.0, kInfinity, -kInfinity}) {
    for (const auto& found :
         {compared({100, 0, kNaN, 7}, {0, 0, other, 7}), compared({100, 0, other, 7}, {0, 0, kNaN, 7})}) {
      CHECK(std::isnan(found.max_abs));
      CHECK(found.at.row == 2);
      CHECK_FALSE(found.agrees_within(1e308));
      CHECK_FALSE(found.agrees_within(kInfinity));
    }
  }
  // Neither an infinite error nor a second NaN takes its place.
  CHECK(compared({1, kNaN, kInfinity, kNaN}, {1, 0, 0, 0}).at.row == 1);
  CHECK(compared({kInfinity, kNaN}, {0, 0}).at.row == 1);
}

TEST_CASE("the place is told by batch, head, row and column") {
  Tensor4<float> result(2, 3, 4, 5);
  Tensor4<double> truth(2, 3, 4, 5);
  result.matrix(1, 2)(3, 1) = 1;
  result.matrix(1, 0)(2, 4) = 3;
  result.matrix(0, 1)(0, 3) = -2;
  const Comparison found = compare(result, truth);
  CHECK(found.max_abs == 3);
  CHECK(found.at.batch == 1);
  CHECK(found.at.head == 0);
  CHECK(found.at.row == 2);
  CHECK(found.at.column == 4);
}

TEST_CASE("the tolerance is the documented bound") {
  Problem problem{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 1, .kv_seq = 100, .head_dim = 12};
  const Truth truth{.largest_score = 7, .largest_value = 3};
  const double products = 2 * (12 + 2) * 7 + 4 * 100 + 16;
  const double given = 4 * 100 + 16;
  const Tolerance single = tolerance_of<float>(problem, truth, false);
  CHECK(single.epsilon == std::ldexp(1.0, -24));
  CHECK(single.output == std::ldexp(1.0, -24) * 3 * products);
  CHECK(test::is_near<double>(single.lse * 0x1p24, products + 7 + std::log(100.0)));
  const Tolerance twice = tolerance_of<double>(problem, truth, true);
  CHECK(twice.epsilon == std::ldexp(1.0, -53));
  CHECK(twice.output == std::ldexp(1.0, -53) * 3 * given);
  CHECK(test::is_near<double>(twice.lse * 0x1p53, given + 7 + std::log(100.0)));
}

TEST_CASE("a tolerance as large as the values says nothing, and a smaller one does") {
  const Problem problem{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 1, .kv_seq = 2, .head_dim = 2};
  CHECK(tolerance_of<float>(problem, {.largest_score = 1e7, .largest_value = 3}, false).says_nothing());
  CHECK_FALSE(
      tolerance_of<double>(problem, {.largest_score = 1e7, .largest_value = 3}, false).says_nothing());
  CHECK_FALSE(tolerance_of<float>(problem, {.largest_score = 1e7, .largest_value = 3}, true).says_nothing());
  CHECK_FALSE(tolerance_of<float>(problem, {.largest_score = 1, .largest_value = 0}, false).says_nothing());
}

TEST_CASE("the truth knows the largest score and the largest value that are visible and finite") {
  // |scale| · Σ|q·k| over the pairs that are seen: row 0 sees the first key alone.
  Given given;
  given.problem = {.batch = 1,
                   .heads = 1,
                   .kv_heads = 1,
                   .seq = 2,
                   .kv_seq = 2,
                   .head_dim = 2,
                   .causal = true,
                   .scale = -0.5};
  given.inputs = {.q = matrix(2, 2, {100, -100, 1, 1}),
                  .k = matrix(2, 2, {3, 4, 5, -6}),
                  .v = matrix(2, 2, {1, -8, 2, kInfinity})};
  const Truth products = truth_of(given.problem, given.inputs);
  CHECK(products.largest_score == 0.5 * (300 + 400));
  CHECK(products.largest_value == 8);
  Given scores = given_scores(2, {-5, 1e9, 2, kInfinity}, {1, 2});
  scores.problem.causal = true;
  CHECK(truth_of(scores.problem, scores.inputs).largest_score == 5);
}

TEST_CASE("the truth's sums lose nothing that plain sums would") {
  // P V: 10¹⁶ + 1 − 10¹⁶ is 0 when it is added plainly.
  const Given output = given_scores(1, {0, 0, 0}, {1e16, 1, -1e16});
  CHECK(truth_of(output.problem, output.inputs).outputs.o.data()[0] == 1.0 / 3);

  // Q Kᵀ: the same, and L is the score.
  Given score;
  score.problem = {.batch = 1,
                   .heads = 1,
                   .kv_heads = 1,
                   .seq = 1,
                   .kv_seq = 1,
                   .head_dim = 3,
                   .causal = false,
                   .scale = 1};
  score.inputs = {
      .q = matrix(1, 3, {1, 1, 1}), .k = matrix(1, 3, {1e16, 1, -1e16}), .v = matrix(1, 3, {0, 0, 0})};
  CHECK(truth_of(score.problem, score.inputs).outputs.lse.data()[0] == 1);

  // The denominator: each term is less than half of what 1 can be moved by.
  const double tiny = -40;
  std::vector<double> scores(100001, tiny);
  scores[0] = 0;
  const Given denominator = given_scores(1, scores, std::vector<double>(100001, 0));
  const double lse = truth_of(denominator.problem, denominator.inputs).outputs.lse.data()[0];
  CHECK(std::fabs(lse - 1e5 * std::exp(tiny)) < 3e-16);
  CHECK(lse > 4e-13);
  double plain = 0;
  for (const double each : scores) plain += std::exp(each);
  CHECK(plain == 1);
}

TEST_CASE("the truth keeps the conventions") {
  const auto truth = [](const std::vector<double>& scores, const std::vector<double>& v) {
    const Given given = given_scores(1, scores, v);
    return truth_of(given.problem, given.inputs).outputs;
  };
  CHECK(test::unlike(truth({-kInfinity, -kInfinity}, {5, 7}), {0}, {-kInfinity}) == "");
  CHECK(test::unlike(truth({-kInfinity, -kInfinity}, {kNaN, 7}), {0}, {-kInfinity}) == "");
  CHECK(test::unlike(truth({-kInfinity, -kInfinity, 10, -kInfinity}, {7, 7, 3, 7}), {3}, {10}) == "");
  CHECK(test::unlike(truth({0, kNaN}, {5, 7}), {kNaN}, {kNaN}) == "");
  CHECK(test::unlike(truth({0, kInfinity}, {5, 7}), {kNaN}, {kNaN}) == "");
  CHECK(test::unlike(truth({-kInfinity, kNaN}, {5, 7}), {kNaN}, {kNaN}) == "");
  CHECK(test::unlike(truth({0, 0}, {5, kInfinity}), {kInfinity}, {std::log(2.0)}) == "");
  CHECK(test::unlike(truth({800, 800}, {5, 7}), {6}, {800 + std::log(2.0)}) == "");
  Given masked = given_products({1, 1}, {0, kNaN}, {5, 9});
  masked.problem.causal = true;
  CHECK(test::unlike(truth_of(masked.problem, masked.inputs).outputs, {5, kNaN}, {0, kNaN}) == "");
}

}  // namespace
}  // namespace flashsim
