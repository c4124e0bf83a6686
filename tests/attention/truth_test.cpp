// The truth: its sums, its conventions, its magnitudes, and its rows one by one.
#include "core/attention/truth.hpp"

#include "core/problem/mask.hpp"

#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_products;
using test::given_scores;
using test::kInfinity;
using test::kNaN;
using test::matrix;

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
  CHECK(products.magnitudes.score == 0.5 * (300 + 400));
  CHECK(products.magnitudes.value == 8);
  Given scores = given_scores(2, {-5, 1e9, 2, kInfinity}, {1, 2});
  scores.problem.causal = true;
  CHECK(truth_of(scores.problem, scores.inputs).magnitudes.score == 5);
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

/// O and L of one row with plain sums in long double, whose 64 bits need no compensation, and its P.
struct WideRow {
  std::vector<long double> p;
  std::vector<double> o;
  double lse = 0;
};
WideRow wide_row(const Given& given, const RowPlace& at) {
  const Problem& problem = given.problem;
  const auto q = given.inputs.q.matrix(at.batch, at.head);
  const auto k = given.inputs.k.matrix(at.batch, problem.kv_head_of(at.head));
  const auto v = given.inputs.v.matrix(at.batch, problem.kv_head_of(at.head));
  WideRow row;
  long double total = 0;
  for (std::int64_t key = 0; key < visible_keys(problem, at.row); ++key) {
    long double score = 0;
    for (std::int64_t x = 0; x < problem.head_dim; ++x) {
      score += static_cast<long double>(q(at.row, x)) * static_cast<long double>(k(key, x));
    }
    score *= static_cast<long double>(problem.score_scale());
    // The scores are small: no maximum need be subtracted.
    row.p.push_back(std::exp(score));
    total += row.p.back();
  }
  row.o.assign(static_cast<std::size_t>(problem.head_dim), 0);
  row.lse = row.p.empty() ? -kInfinity : static_cast<double>(std::log(total));
  for (long double& p : row.p) p /= total;
  for (std::int64_t x = 0; x < problem.head_dim; ++x) {
    long double sum = 0;
    for (std::size_t key = 0; key < row.p.size(); ++key) {
      sum += row.p[key] * static_cast<long double>(v(static_cast<std::int64_t>(key), x));
    }
    row.o[static_cast<std::size_t>(x)] = static_cast<double>(sum);
  }
  return row;
}

TEST_CASE("the truth is what wider sums give, to a few units of the last place") {
  test::RandomShapes shapes(77);
  test::RandomNumbers random(78);
  for (int i = 0; i < 60; ++i) {
    Given given{shapes.next(30).problem};
    given.inputs = drawn_inputs(given.problem, random, 2);
    const Truth truth = truth_of(given.problem, given.inputs);
    double worst = 0;
    for (std::size_t k = 0; k < truth.sample.rows.size(); ++k) {
      const WideRow wide = wide_row(given, truth.sample.rows[k]);
      for (std::size_t x = 0; x < wide.o.size(); ++x) {
        worst = std::max(worst, std::fabs(truth.outputs.o.data()[k * wide.o.size() + x] - wide.o[x]));
      }
      if (truth.outputs.lse.data()[k] != wide.lse) {
        worst = std::max(worst, std::fabs(truth.outputs.lse.data()[k] - wide.lse));
      }
    }
    INFO(shape_text(given.problem));
    CHECK(worst <= 64 * 0x1p-53);
  }
}

TEST_CASE("float inputs have the truth of the same numbers as doubles") {
  test::RandomShapes shapes(5);
  test::RandomNumbers random(6);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = shapes.next(20).problem;
    const Inputs<float> single = converted<float>(drawn_inputs(problem, random, 3));
    CHECK(test::same_bits(truth_of(problem, single).outputs,
                          truth_of(problem, converted<double>(single)).outputs));
  }
}

TEST_CASE("sampled rows have the bits of the whole truth, and threads change none") {
  test::RandomShapes shapes(91);
  test::RandomNumbers random(92);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = shapes.next(40).problem;
    const Inputs<float> inputs = converted<float>(drawn_inputs(problem, random, 3));
    const Truth whole = truth_of(problem, inputs);
    CHECK(whole.sample.whole());
    for (const int threads : {2, 7}) {
      const Truth again = truth_of(problem, inputs, threads);
      CHECK(test::same_bits(again.outputs, whole.outputs));
      CHECK(again.magnitudes.score == whole.magnitudes.score);
      CHECK(again.magnitudes.summed_value == whole.magnitudes.summed_value);
      CHECK(again.magnitudes.output == whole.magnitudes.output);
    }
    const RowSample sample = sample_query_rows(problem, {4, 4}, 1);
    const Truth some = truth_of(problem, inputs, sample, 2);
    const auto d = static_cast<std::size_t>(problem.head_dim);
    for (std::size_t k = 0; k < sample.rows.size(); ++k) {
      const auto& [b, h, row] = sample.rows[k];
      CHECK(test::same_bits(some.outputs.o.data().data() + k * d, whole.outputs.o.matrix(b, h).row(row), d));
      CHECK(test::same_bits(&some.outputs.lse.data()[k], whole.outputs.lse.matrix(b, h).row(row), 1));
    }
    CHECK(some.magnitudes.score <= whole.magnitudes.score);
  }
}

}  // namespace
}  // namespace flashsim
