// The bounds on rounding: their formulas, and that nothing which rounds as it may ever exceeds them.
#include "core/attention/tolerance.hpp"

#include "core/attention/true_gradients.hpp"
#include "core/attention/truth.hpp"
#include "core/schedule/walk.hpp"
#include "tests/attention/plain_attention.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::PlainAttention;
using test::PlainWay;
using test::RandomNumbers;

const Problem kSmall{.batch = 1,
                     .heads = 1,
                     .kv_heads = 1,
                     .seq = 1,
                     .kv_seq = 100,
                     .head_dim = 12,
                     .scale = 0.5,
                     .storage = NumberType::fp32};
const Magnitudes kMagnitudes{.score = 7, .value = 3, .summed_value = 2, .output = 1.5};

/// Without what is below the least normal numbers.
bool near(double got, double expected) { return std::fabs(got - expected) <= 1e-12 * std::fabs(expected); }

TEST_CASE("the bounds on O and L are the documented ones") {
  const double eps = 0x1p-24;
  const double e = eps * (12 + 5) * 7;
  const double g = e + eps * (100 + 5 * 25 + 12);
  const Tolerance flash = tolerance_of<float>(Algorithm::flash2, kSmall, {4, 4}, kMagnitudes, false);
  CHECK(near(flash.output.value(), 2 * g * (1 + 2 * g) * 2 + 4 * eps * std::log(100.0) * 3));
  CHECK(near(flash.lse.value(), g * (1 + g) + eps * (2 * 7 + 10 * std::log(100.0))));
  CHECK(flash.output.symbols() == "2·G·(1 + 2·G)·V̄ + 4·ε·ln Nkv·V + λ·(4·Nkv + 4)");
  REQUIRE(flash.steps.size() == 2);
  CHECK(flash.steps[0].name == "E");
  CHECK(flash.steps[0].formula.symbols() == "ε·(d + 5)·A + d·|scale|·λ");
  CHECK(flash.steps[1].formula.symbols() == "E + ε·(Nkv + 5·Tc + 12)");
  CHECK(flash.steps[1].formula.numbers() == "7.09e-06 + 5.96e-08 · (100 + 5 · 25 + 12)");
  CHECK(flash.rescalings == 25);

  const Tolerance standard = tolerance_of<double>(Algorithm::standard, kSmall, {4, 4}, kMagnitudes, true);
  CHECK(standard.unit == 0x1p-24);  // float32 storage is narrower than float64
  CHECK(standard.epsilon == 0x1p-53);
  CHECK(standard.steps[0].formula.symbols() == "ε·(Nkv + 12) + u");
}

TEST_CASE("rounding to storage is bounded where the algorithm does it") {
  Problem problem = kSmall;
  problem.storage = NumberType::bf16;
  const auto of = [&](Algorithm algorithm) {
    return tolerance_of<float>(algorithm, problem, {4, 4}, kMagnitudes, false);
  };
  CHECK(of(Algorithm::standard).steps[0].formula.symbols() == "ε·(d + 5)·A + d·|scale|·λ + u·A + 0.5·η");
  CHECK(of(Algorithm::eager).steps[0].formula.symbols() ==
        "ε·(d + 5)·A + d·|scale|·λ + 2·u·A + 0.5·η·(1 + |scale|)");
  CHECK(of(Algorithm::flash2).output.symbols() ==
        "2·G·(1 + 2·G)·V̄ + 4·ε·ln Nkv·V + Nkv·η·V + u·O + 0.5·η + λ·(4·Nkv + 4)");
  CHECK(of(Algorithm::flash1).output.symbols() ==
        "2·G·(1 + 2·G)·V̄ + 4·ε·ln Nkv·V + Nkv·η·V + Tc·(u·V + 0.5·η) + λ·(4·Nkv + 4)");
  CHECK(of(Algorithm::flash2).unit == 0x1p-8);
  CHECK(of(Algorithm::flash2).smallest == 0x1p-133);
}

TEST_CASE("a bound as large as O says nothing, and a smaller one does") {
  Magnitudes m{.score = 1e7, .value = 3, .summed_value = 3, .output = 3};
  const auto says_nothing = [&](auto type, bool given) {
    return tolerance_of<decltype(type)>(Algorithm::standard, kSmall, {}, m, given).output_says_nothing();
  };
  CHECK(says_nothing(float{}, false));
  CHECK_FALSE(says_nothing(double{}, true));
  CHECK_FALSE(says_nothing(float{}, true));
  m = {.score = 1, .value = 1, .summed_value = 1, .output = 1e-9};
  CHECK(says_nothing(float{}, false));  // zeros would pass
  m.output = 0;                         // as they should
  CHECK_FALSE(says_nothing(float{}, false));
  m = {.score = 1e30};
  CHECK_FALSE(says_nothing(float{}, false));
}

TEST_CASE("scores that fp16 can't hold are told") {
  Problem problem = kSmall;
  problem.storage = NumberType::fp16;
  const auto overflow = [&](Algorithm algorithm, double score) {
    return tolerance_of<float>(algorithm, problem, {}, {.score = score}, false).scores_may_overflow();
  };
  CHECK(overflow(Algorithm::standard, 65504));
  CHECK_FALSE(overflow(Algorithm::standard, 40000));
  CHECK(overflow(Algorithm::eager, 40000));  // 80000 before it is scaled
  CHECK_FALSE(overflow(Algorithm::flash2, 1e6));
  problem.storage = NumberType::bf16;
  CHECK_FALSE(overflow(Algorithm::standard, 65504));
}

/// The largest error in parts of its tolerance.
struct Used {
  double output = 0, lse = 0, dq = 0, dk = 0, dv = 0;
};
template <class T>
double parts(const Tensor4<T>& got, const RowSample& sample, const Tensor4<double>& truth,
             const Problem& problem, bool is_stored, const RealFormula& bound) {
  const NumberType own = test::number_type<T>();
  const NumberType type = is_stored && is_narrower<T>(problem.storage) ? problem.storage : own;
  const Comparison found = compare(got, sample, truth, type, bound.value());
  return found.max_abs.size == 0 ? 0 : found.max_abs.size / bound.value();
}

template <class T>
Used used_by(const PlainWay& way, const Problem& problem, const Inputs<T>& inputs, const Tensor4<T>& d_o) {
  PlainAttention<T> plain(way, problem, inputs);
  const Outputs<T> outputs = plain.forward();
  const Tiling tiling{1, way.key_rows};
  const Truth truth = truth_of(problem, inputs);
  const Tolerance t = tolerance_of<T>(way.algorithm, problem, tiling, truth.magnitudes, false);
  Used used{.output = parts(outputs.o, truth.sample, truth.outputs.o, problem, true, t.output),
            .lse = parts(outputs.lse, truth.sample, truth.outputs.lse, problem, false, t.lse)};
  if (!has_backward(way.algorithm)) return used;
  const Gradients<T> gradients = plain.backward(outputs, d_o);
  const TrueGradients slopes = true_gradients(problem, inputs, d_o);
  const Tolerance g = gradient_tolerance_of<T>(way.algorithm, problem, tiling, slopes.magnitudes);
  used.dq = parts(gradients.dq, slopes.queries, slopes.gradients.dq, problem, true, g.dq);
  used.dk = parts(gradients.dk, slopes.keys, slopes.gradients.dk, problem, true, g.dk);
  used.dv = parts(gradients.dv, slopes.keys, slopes.gradients.dv, problem, true, g.dv);
  return used;
}

/// The worst of many random problems.
template <class T>
Used worst_of(NumberType storage, int problems) {
  test::RandomShapes shapes(static_cast<std::uint64_t>(storage) + 100);
  RandomNumbers random(static_cast<std::uint64_t>(storage) + sizeof(T));
  Used worst;
  for (int i = 0; i < problems; ++i) {
    test::Shape shape = shapes.next(12);
    shape.problem.storage = storage;
    shape.problem.batch = 1;
    if (i % 3 == 0) shape.problem.scale = random.next(2);
    const double magnitude = i % 4 == 0 ? 8 : i % 4 == 1 ? 0.05 : 1.5;
    const auto rounded = [&](const Tensor4<double>& drawn) {
      Tensor4<T> tensor = converted_tensor<T>(drawn);
      round_to_storage(shape.problem, tensor);
      return tensor;
    };
    const Inputs<double> drawn = drawn_inputs(shape.problem, random, magnitude);
    const Inputs<T> inputs{.q = rounded(drawn.q), .k = rounded(drawn.k), .v = rounded(drawn.v)};
    const Tensor4<T> d_o = rounded(drawn_inputs(shape.problem, random, 1).q);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      const PlainWay way{.algorithm = facts.algorithm,
                         .key_rows = i % 2 == 0 ? 1 : shape.tiling.key_rows,
                         .sums_rounded_weights = i % 5 < 2,
                         .d_from_output = facts.tiled || i % 3 != 0};
      const Used used = used_by(way, shape.problem, inputs, d_o);
      for (double Used::*each : {&Used::output, &Used::lse, &Used::dq, &Used::dk, &Used::dv}) {
        if (!(used.*each <= worst.*each)) worst.*each = used.*each;
      }
    }
  }
  return worst;
}

template <class T>
void check_bounds(NumberType storage) {
  INFO(name_of(storage) << " computed in " << 8 * sizeof(T) << " bits");
  const Used worst = worst_of<T>(storage, 400);
  CAPTURE(worst.output, worst.lse, worst.dq, worst.dk, worst.dv);
  CHECK(worst.output <= 1);
  CHECK(worst.lse <= 1);
  CHECK(worst.dq <= 1);
  CHECK(worst.dk <= 1);
  CHECK(worst.dv <= 1);
  // Bounds that nothing comes near would find nothing.
  CHECK(worst.output > 0.02);
  CHECK(worst.lse > 0.02);
  CHECK(worst.dq > 0.005);
  CHECK(worst.dk > 0.005);
  CHECK(worst.dv > 0.005);
}

TEST_CASE("thousands of random problems stay within the bounds, forward and backward, in every type") {
  check_bounds<float>(NumberType::fp32);
  check_bounds<double>(NumberType::fp64);
  check_bounds<float>(NumberType::fp16);
  check_bounds<float>(NumberType::bf16);
  check_bounds<double>(NumberType::fp32);
  check_bounds<double>(NumberType::bf16);
}

TEST_CASE("the executor stays within the bounds of every algorithm at every tiling") {
  test::RandomShapes shapes(2024);
  RandomNumbers random(2025);
  double worst = 0;
  int runs = 0;
  for (int i = 0; i < 130; ++i) {
    const test::Shape shape = shapes.next(16);
    const test::Given given{shape.problem, drawn_inputs(shape.problem, random, i % 2 == 0 ? 2 : 6)};
    for (const test::Way& way : test::ways({shape.tiling, {1, 1}})) {
      for (const test::Misses& misses :
           {test::misses_of<float>(way, given), test::misses_of<double>(way, given)}) {
        ++runs;
        if (!misses.none()) worst = 2;
        worst = std::fmax(worst, std::fmax(misses.output, misses.lse));
      }
    }
  }
  CHECK(runs == 130 * 2 * 2 * static_cast<int>(kAlgorithms.size()));
  CHECK(worst <= 1);
}

TEST_CASE("the worst order of one-key tiles, whose maximum rises every time, stays within the bounds") {
  for (const double rise : {1e-3, 0.1, 1.0}) {
    std::vector<double> scores;
    std::vector<double> values;
    for (int key = 0; key < 2000; ++key) {
      scores.push_back(rise * key * 1.37);
      values.push_back(1 + 1.0 / (3 + key));
    }
    const test::Given given = test::given_scores(1, scores, values);
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
      const test::Misses single = test::misses_of<float>({algorithm, {1, 1}}, given);
      CHECK(single.none());
      CHECK(test::misses_of<double>({algorithm, {1, 1}}, given).none());
    }
  }
}

}  // namespace
}  // namespace flashsim
