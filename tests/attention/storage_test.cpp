// Narrow storage types: what is stored is representable, sums aren't rounded, and the result is within
// rounding of the truth.
#include <algorithm>

#include "core/attention/verification.hpp"
#include "core/base/rounding.hpp"
#include "tests/attention/backward.hpp"
#include "tests/attention/failures.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::backward_ways;
using test::drawn_inputs;
using test::drawn_output_gradient;
using test::Failures;
using test::Given;
using test::named;
using test::RandomNumbers;
using test::Way;
using test::ways;

template <class T>
bool is_stored(const Tensor4<T>& tensor, NumberType type) {
  return std::all_of(tensor.data().begin(), tensor.data().end(),
                     [&](T value) { return stored_as(type, value) == value; });
}

/// Runs `look(T(), storage)` for every storage type that is narrower than T.
template <class Look>
void for_every_narrower_type(Look look) {
  look(float(), NumberType::fp16);
  look(float(), NumberType::bf16);
  look(double(), NumberType::fp16);
  look(double(), NumberType::bf16);
  look(double(), NumberType::fp32);
}

TEST_CASE("what is stored can be held by the storage type, and L and the sums aren't rounded to it") {
  RandomNumbers random(401);
  test::RandomShapes shapes(402);
  Failures failures;
  int finer = 0;
  for (int i = 0; i < 15; ++i) {
    test::Shape shape = shapes.next(24);
    const Given drawn{shape.problem, drawn_inputs(shape.problem, random, 2)};
    const Tensor4<double> d_o = drawn_output_gradient(shape.problem, random);
    for_every_narrower_type([&](auto type, NumberType storage) {
      using T = decltype(type);
      Given narrow = drawn;
      narrow.problem.storage = storage;
      const auto given = test::stored<T>(narrow, d_o);
      const std::string where = fmt::format("{} {}", name_of(storage), test::text_of(shape));
      for (const Way& way : ways({shape.tiling, {128, 128}})) {
        const Outputs<T> got = attend<T>(given.problem, way.method(), {}, given.inputs);
        failures.add(is_stored(got.o, storage), named<T>(way, where));
        finer += is_stored(got.lse, storage) ? 0 : 1;
      }
      for (const Way& way : backward_ways({shape.tiling, {128, 128}})) {
        const Gradients<T> got = gradients_of(way, given);
        failures.add(is_stored(got.dq, storage), named<T>(way, "dQ, " + where));
        failures.add(is_stored(got.dk, storage), named<T>(way, "dK, " + where));
        failures.add(is_stored(got.dv, storage), named<T>(way, "dV, " + where));
      }
    });
  }
  CHECK(failures.first() == "");
  CHECK(finer > 400);
}

TEST_CASE("in every storage type the result and the gradients are within rounding of the truth") {
  RandomNumbers random(403);
  test::RandomShapes shapes(404);
  Failures failures;
  int told = 0;
  for (int i = 0; i < 15; ++i) {
    test::Shape shape = shapes.next(24);
    const Given drawn{shape.problem, drawn_inputs(shape.problem, random, 1)};
    const Tensor4<double> d_o = drawn_output_gradient(shape.problem, random);
    for_every_narrower_type([&](auto type, NumberType storage) {
      using T = decltype(type);
      Given narrow = drawn;
      narrow.problem.storage = storage;
      const auto given = test::stored<T>(narrow, d_o);
      const Problem& p = given.problem;
      const std::string where = fmt::format("{} {}", name_of(storage), test::text_of(shape));
      for (const Way& way : ways({shape.tiling})) {
        const Outputs<T> got = attend<T>(p, way.method(), {}, given.inputs);
        const Verification found = verify(p, way.method(), {}, given.inputs, got);
        failures.add(found.agrees(), named<T>(way, where));
        told += found.says_nothing() ? 0 : 1;
      }
      for (const Way& way : backward_ways({shape.tiling})) {
        failures.add(verify_gradients(way.algorithm, p, way.tiling, {}, given.inputs, given.d_o,
                                      gradients_of(way, given))
                         .agrees(),
                     named<T>(way, "backward, " + where));
      }
    });
  }
  CHECK(failures.first() == "");
  CHECK(told > 250);
}

TEST_CASE("P is rounded to storage before it meets V, in every algorithm") {
  // exp(−1) isn't a bfloat16 number; with one value of 2¹⁰ in sight P's rounding shows in O.
  const Given given = test::given_scores(1, {0, -1}, {0, 1024});
  Given narrow = given;
  narrow.problem.storage = NumberType::bf16;
  const Inputs<float> inputs = converted<float>(narrow.inputs);
  const double p = std::exp(-1.0);
  const double l = 1 + p;
  const auto rounded = [](double value) { return stored_as(NumberType::bf16, value); };
  for (const Way& way : test::in_one_part(ways({{1, 2}, {1, 1}, {128, 128}}))) {
    INFO(text_of(way));
    const Outputs<float> got = attend<float>(narrow.problem, way.method(), {}, inputs);
    // A chunk of its own gives the second key the weight 1, and nothing is rounded.
    if (test::combines_parts(way) && way.tiling.key_rows == 1) continue;
    // Either P is normalised before it is rounded, or O is divided at the end.
    const double o =
        test::divides_output(way) ? rounded(rounded(p) * 1024 / l) : rounded(rounded(p / l) * 1024);
    CHECK(static_cast<double>(got.o.data()[0]) == o);
    CHECK(test::is_near<float>(got.lse.data()[0], std::log(l)));
  }
}

TEST_CASE("S is rounded where it is stored, and nowhere else") {
  // Q = [1, 1], K = [256, 1]: the score is 257, which bfloat16 stores as 256.
  Given given;
  given.problem = {.batch = 1,
                   .heads = 1,
                   .kv_heads = 1,
                   .seq = 1,
                   .kv_seq = 1,
                   .head_dim = 2,
                   .causal = false,
                   .scale = 1,
                   .storage = NumberType::bf16};
  given.inputs = {
      .q = test::matrix(1, 2, {1, 1}), .k = test::matrix(1, 2, {256, 1}), .v = test::matrix(1, 2, {3, 4})};
  for (const Way& way : ways({{1, 1}, {128, 128}})) {
    INFO(text_of(way));
    const Outputs<float> got = attend<float>(given.problem, way.method(), {}, converted<float>(given.inputs));
    CHECK(got.lse.data()[0] == (facts_of(way.algorithm).stores_scores ? 256 : 257));
    CHECK(got.o.data() == std::vector<float>{3, 4});
  }
}

TEST_CASE("dS is rounded to storage before it meets Q and K, and P before it meets dO") {
  // Q = 0, so P = ⅓ each. dP = V = 0, 1, 3 and K = 1, so dQ = Σ dS, which would be next to nothing.
  Given given = test::given_products({0}, {1, 1, 1}, {0, 1, 3});
  given.problem.storage = NumberType::bf16;
  const auto stored = test::stored<float>(given, test::matrix(1, 1, {1}));
  for (const Way& way : backward_ways({{1, 1}, {1, 2}, {128, 128}})) {
    INFO(text_of(way));
    const Gradients<float> got = gradients_of(way, stored);
    // flash2: O = 171/128, dS = −228/512, −229/2048, 142/256. standard, with P = 171/512 and D = 171/128:
    // dS = −228/512, −230/2048, 142/256.
    const float dq = way.algorithm == Algorithm::flash2 ? -5.0F / 2048 : -6.0F / 2048;
    CHECK(got.dq.data() == std::vector<float>{dq});
    CHECK(got.dk.data() == std::vector<float>{0, 0, 0});
    CHECK(got.dv.data() == std::vector<float>(3, 171.0F / 512));
  }
}

/// One row of flash2 in tiles of `width` keys, every sum rounded to `type` at every addition, spelled out.
struct RoundedRow {
  double o, lse;
};
RoundedRow rounded_row(NumberType type, const std::vector<double>& scores, const std::vector<double>& v,
                       std::size_t width) {
  double m = -test::kInfinity, l = 0, o = 0;
  for (std::size_t begin = 0; begin < scores.size(); begin += width) {
    const std::size_t end = std::min(begin + width, scores.size());
    double next = m;
    for (std::size_t j = begin; j < end; ++j) next = std::max(next, scores[j]);
    l = stored_as(type, std::exp(m - next) * l);
    o = stored_as(type, std::exp(m - next) * o);
    m = next;
    for (std::size_t j = begin; j < end; ++j) {
      const double p = stored_as(type, std::exp(scores[j] - m));
      l = stored_as(type, l + p);
      o = stored_as(type, o + p * v[j]);
    }
  }
  return {stored_as(type, o / l), m + std::log(l)};
}

TEST_CASE("accumulating in storage rounds l and O wherever something is added or multiplied") {
  RandomNumbers random(406);
  for (int i = 0; i < 40; ++i) {
    std::vector<double> scores, v;
    for (int j = 0; j < 24; ++j) {
      // Rising, so that every tile rescales.
      scores.push_back(stored_as(NumberType::bf16, 0.1 * j + random.next(0.5)));
      v.push_back(stored_as(NumberType::bf16, random.next(4)));
    }
    const Given drawn = test::given_scores(1, scores, v);
    for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
      Given given = drawn;
      given.problem.storage = type;
      for (const std::int64_t width : {1, 5, 64}) {
        const RoundedRow expected = rounded_row(type, scores, v, static_cast<std::size_t>(width));
        const Outputs<double> got = attend<double>(Algorithm::flash2, given.problem, {4, width},
                                                   {.accumulate_in_storage = true}, given.inputs);
        INFO(name_of(type) << ", tiles of " << width << ", run " << i);
        CHECK(got.o.data()[0] == expected.o);
        CHECK(test::is_near<double>(got.lse.data()[0], expected.lse));
      }
    }
  }
}

TEST_CASE("a storage type that holds all of T changes no bit") {
  RandomNumbers random(405);
  const Problem problem{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 9, .kv_seq = 12, .head_dim = 4};
  Given given{problem, drawn_inputs(problem, random, 2)};
  const Tensor4<double> d_o = drawn_output_gradient(problem, random);
  given.problem.storage = NumberType::fp64;
  const auto wide = test::stored<float>(given, d_o);
  given.problem.storage = NumberType::fp32;
  const auto same = test::stored<float>(given, d_o);
  for (const Way& way : ways({{2, 3}, {128, 128}})) {
    INFO(text_of(way));
    CHECK(test::same_bits(attend<float>(wide.problem, way.method(), {}, wide.inputs),
                          attend<float>(same.problem, way.method(), {}, same.inputs)));
  }
  for (const Way& way : backward_ways({{2, 3}, {128, 128}})) {
    INFO(text_of(way));
    CHECK(test::same_bits(gradients_of(way, wide), gradients_of(way, same)));
  }
}

}  // namespace
}  // namespace flashsim
