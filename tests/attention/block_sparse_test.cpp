// Block-sparse attention: what the pattern leaves out is masked, in the result and in the truth.
#include <cmath>

#include "core/attention/first_fault.hpp"
#include "core/attention/verification.hpp"
#include "tests/attention/failures.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_pattern.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::drawn_inputs;
using test::Failures;
using test::Given;
using test::kInfinity;
using test::kNaN;
using test::RandomNumbers;
using test::same_bits;

Method sparse(Tiling tiling, std::shared_ptr<const BlockPattern> pattern) {
  return {.algorithm = Algorithm::block_sparse, .tiling = tiling, .pattern = std::move(pattern)};
}

std::shared_ptr<const BlockPattern> spelled_out(std::vector<std::string> rows, const Problem& p, Tiling t) {
  return BlockPattern::on_tiles({.kind = PatternKind::rows, .rows = std::move(rows)}, p, t).value();
}

/// The scores of a problem, −∞ where the pattern hides a pair: dense attention then computes the same.
Inputs<double> with_hidden_scores(const Problem& p, const Inputs<double>& inputs,
                                  const BlockPattern& pattern) {
  Inputs<double> hidden{.v = inputs.v, .scores = Tensor4<double>(p.batch, p.heads, p.seq, p.kv_seq)};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t row = 0; row < p.seq; ++row) {
        for (std::int64_t key = 0; key < p.kv_seq; ++key) {
          double score = 0;
          for (std::int64_t x = 0; x < p.head_dim; ++x) {
            score += inputs.q.matrix(b, h)(row, x) * inputs.k.matrix(b, p.kv_head_of(h))(key, x);
          }
          const bool shown = test::visible(p, row, key) &&
                             pattern.has(row / pattern.tiling().query_rows, key / pattern.tiling().key_rows);
          hidden.scores.matrix(b, h)(row, key) = shown ? score * p.score_scale() : -kInfinity;
        }
      }
    }
  }
  return hidden;
}

TEST_CASE(
    "a pattern masks what it leaves out, for random shapes and patterns, in the truth as in the result") {
  test::RandomShapes shapes(71);
  test::RandomPatterns patterns(72);
  Failures failures;
  for (int i = 0; i < 60; ++i) {
    test::Shape shape = shapes.next(24);
    Problem& p = shape.problem;
    p.storage = NumberType::fp64;
    RandomNumbers random(73);
    const Inputs<double> inputs = drawn_inputs(p, random, 2);
    const auto pattern = patterns.next(p, shape.tiling);
    const Truth dense = truth_of(p, with_hidden_scores(p, inputs, *pattern));
    const Truth truth = truth_of(p, inputs, all_query_rows(p), 1, pattern.get());
    const auto near = [&](const Outputs<double>& got) {
      return compare(got.o, dense.outputs.o).max_abs.size < 1e-11 &&
             compare(got.lse, dense.outputs.lse).max_abs.size < 1e-11;
    };
    failures.add(near(truth.outputs), "truth, " + text_of(shape));
    const Method method = sparse(shape.tiling, pattern);
    const Outputs<double> got = attend<double>(p, method, {}, inputs);
    failures.add(near(got), text_of(shape));
    failures.add(verify(p, method, {}, inputs, got).agrees(), "verified, " + text_of(shape));
    p.storage = NumberType::fp32;
    const Inputs<float> narrow = converted<float>(inputs);
    failures.add(verify(p, method, {}, narrow, attend<float>(p, method, {}, narrow)).agrees(),
                 "fp32, " + text_of(shape));
  }
  CHECK(failures.runs() == 60 * 4);
  CHECK(failures.first() == "");
}

TEST_CASE("NaN and infinities in keys and values that the pattern hides reach nothing, and no tolerance") {
  Problem p{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 4, .kv_seq = 6, .head_dim = 3, .causal = false};
  p.storage = NumberType::fp64;
  const Tiling t{2, 2};
  const auto pattern = spelled_out({"101", "001"}, p, t);
  RandomNumbers random(74);
  const Inputs<double> clean = drawn_inputs(p, random, 2);
  const Outputs<double> expected = attend<double>(p, sparse(t, pattern), {}, clean);
  const Truth truth = truth_of(p, clean, all_query_rows(p), 1, pattern.get());
  for (const double poison : {kNaN, kInfinity, -kInfinity, 1e200}) {
    Inputs<double> inputs = clean;
    for (const std::int64_t key : {2, 3}) {
      for (std::int64_t x = 0; x < p.head_dim; ++x) {
        inputs.k.matrix(0, 0)(key, x) = inputs.v.matrix(0, 0)(key, x) = poison;
      }
    }
    CAPTURE(poison);
    const Outputs<double> got = attend<double>(p, sparse(t, pattern), {}, inputs);
    CHECK(same_bits(got, expected));
    const Truth poisoned = truth_of(p, inputs, all_query_rows(p), 1, pattern.get());
    CHECK(same_bits(poisoned.outputs, truth.outputs));
    CHECK(poisoned.magnitudes.value == truth.magnitudes.value);
    CHECK(poisoned.magnitudes.score == truth.magnitudes.score);
    CHECK(verify(p, sparse(t, pattern), {}, inputs, got).verdict() == Verdict::right);
  }
}

TEST_CASE("a row without a block has O = 0 and L = −∞") {
  Problem p{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 3, .kv_seq = 3, .head_dim = 2};
  p.storage = NumberType::fp64;
  const auto pattern = spelled_out({"111", "000", "001"}, p, {1, 1});
  RandomNumbers random(75);
  const Inputs<double> inputs = drawn_inputs(p, random, 2);
  const Method method = sparse({1, 1}, pattern);
  const Outputs<double> got = attend<double>(p, method, {}, inputs);
  CHECK(got.o.matrix(0, 0)(1, 0) == 0);
  CHECK(got.o.matrix(0, 0)(1, 1) == 0);
  CHECK(got.lse.matrix(0, 0)(1, 0) == -kInfinity);
  CHECK(got.o.matrix(0, 0)(2, 0) == inputs.v.matrix(0, 0)(2, 0));
  CHECK(verify(p, method, {}, inputs, got).agrees());
}

TEST_CASE("held against the dense truth, a result under a pattern is wrong") {
  Problem p{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 8, .kv_seq = 8, .head_dim = 2};
  p.storage = NumberType::fp64;
  const auto pattern = BlockPattern::on_tiles({.kind = PatternKind::window, .size = 1}, p, {2, 2}).value();
  RandomNumbers random(76);
  const Inputs<double> inputs = drawn_inputs(p, random, 2);
  const Outputs<double> got = attend<double>(p, sparse({2, 2}, pattern), {}, inputs);
  CHECK(verify(p, sparse({2, 2}, pattern), {}, inputs, got).agrees());
  CHECK_FALSE(verify(Algorithm::flash2, p, {2, 2}, {}, inputs, got).agrees());
}

TEST_CASE("the number of threads changes no bit of a sparse result") {
  Problem p{.batch = 2, .heads = 4, .kv_heads = 2, .seq = 30, .kv_seq = 41, .head_dim = 5};
  p.storage = NumberType::fp32;
  const auto pattern = BlockPattern::on_tiles({.kind = PatternKind::strided, .size = 3}, p, {4, 3}).value();
  RandomNumbers random(77);
  const Inputs<float> inputs = converted<float>(drawn_inputs(p, random, 2));
  const Outputs<float> alone = attend<float>(p, sparse({4, 3}, pattern), {}, inputs);
  for (const int threads : {2, 7}) {
    CHECK(same_bits(attend<float>(p, sparse({4, 3}, pattern), {}, inputs, {.threads = threads}), alone));
  }
}

TEST_CASE("a fault under a pattern is told against the keys that the pattern shows") {
  Problem p{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 1, .kv_seq = 3, .head_dim = 1, .causal = false};
  p.storage = NumberType::fp64;
  Inputs<double> inputs{.v = Tensor4<double>(1, 1, 3, 1), .scores = Tensor4<double>(1, 1, 1, 3)};
  inputs.v.data() = {1, 100, 3};
  inputs.scores.data() = {0, 50, 2};
  const Method method = sparse({1, 1}, spelled_out({"101"}, p, {1, 1}));
  const Switches switches{.rescale = false};
  const auto outputs = attend<double>(p, method, switches, inputs);
  const auto fault = first_fault(p, method, switches, inputs, verify(p, method, switches, inputs, outputs));
  REQUIRE(fault);
  REQUIRE(fault->key_tile);
  CHECK(*fault->key_tile == 2);
  CHECK(fault->expected == Approx((1 + 3 * std::exp(2.0)) / (1 + std::exp(2.0))));
}

TEST_CASE("rows are sampled by what the pattern lets them see") {
  const Problem p{
      .batch = 1, .heads = 1, .kv_heads = 1, .seq = 1000, .kv_seq = 1000, .head_dim = 16, .causal = false};
  const auto pattern = BlockPattern::on_tiles({.kind = PatternKind::window, .size = 1}, p, {10, 10}).value();
  // A row sees its ten keys: 16 products each, against 16 000 of a dense row.
  CHECK(sample_query_rows(p, {10, 10}, 160000, pattern.get()).whole());
  CHECK_FALSE(sample_query_rows(p, {10, 10}, 160000).whole());
}

}  // namespace
}  // namespace flashsim
