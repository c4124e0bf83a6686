// Split-kv: any split of the keys merges to the same result, the heads of a group share their keys, and what
// sees nothing adds nothing.
#include <cmath>

#include "core/attention/first_fault.hpp"
#include "core/attention/verification.hpp"
#include "tests/attention/failures.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::attend_in;
using test::drawn_inputs;
using test::Failures;
using test::Given;
using test::given_scores;
using test::kInfinity;
using test::kNaN;
using test::misses_of;
using test::RandomNumbers;
using test::same_bits;
using test::Way;

Way split_way(Tiling tiling, std::int64_t splits) {
  return {.algorithm = Algorithm::split_kv, .tiling = tiling, .splits = splits};
}

TEST_CASE("any split of the keys merges to the same result within rounding") {
  test::RandomShapes shapes(61);
  Failures failures;
  for (int i = 0; i < 40; ++i) {
    const test::Shape shape = shapes.next(40);
    RandomNumbers random(62);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 3)};
    for (const std::int64_t splits : {1, 2, 3, 5, 17, 64}) {
      const Way way = split_way(shape.tiling, splits);
      failures.add(misses_of<float>(way, given).none(), text_of(way) + " fp32, " + text_of(shape));
      failures.add(misses_of<double>(way, given).none(), text_of(way) + " fp64, " + text_of(shape));
    }
  }
  CHECK(failures.runs() == 40 * 6 * 2);
  CHECK(failures.first() == "");
}

TEST_CASE("one part of a head of its own has FlashAttention-2's bits") {
  test::RandomShapes shapes(63);
  for (int i = 0; i < 20; ++i) {
    test::Shape shape = shapes.next(40);
    shape.problem.kv_heads = shape.problem.heads;
    RandomNumbers random(64);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 3)};
    CAPTURE(text_of(shape));
    CHECK(same_bits(attend_in<float>(split_way(shape.tiling, 1), given),
                    attend_in<float>({Algorithm::flash2, shape.tiling}, given)));
  }
}

TEST_CASE("packed rows don't know their neighbours: query tiles of any height give the same bits") {
  const Problem p{.batch = 2, .heads = 6, .kv_heads = 2, .seq = 7, .kv_seq = 19, .head_dim = 5};
  RandomNumbers random(65);
  const Given given{p, drawn_inputs(p, random, 2)};
  for (const std::int64_t splits : {1, 2, 4}) {
    const Outputs<float> packed = attend_in<float>(split_way({5, 4}, splits), given);
    const Outputs<float> single = attend_in<float>(split_way({128, 4}, splits), given);
    CHECK(same_bits(packed, single));
  }
}

TEST_CASE("parts merge by what they weigh: one key of score 0 and three of score 0") {
  // The keys of a part are a tile here: 1 + 1 + 2 keys in parts of one tile.
  const Given given = given_scores(1, {0, 0, 0, 0}, {0, 1, 1, 1});
  for (const std::int64_t splits : {1, 2, 3, 4, 9}) {
    CHECK(test::unlike_in_both({split_way({1, 1}, splits)}, given, {0.75}, {std::log(4.0)}) == "");
  }
}

TEST_CASE("parts without a visible key leave 0 and −∞ and change nothing; all of them leave an empty row") {
  CHECK(test::unlike_in_both(
            {split_way({1, 1}, 3), split_way({4, 1}, 9), split_way({2, 2}, 2)},
            given_scores(2, {-kInfinity, 1, -kInfinity, -kInfinity, -kInfinity, -kInfinity}, {5, 7, 9}),
            {7, 0}, {1, -kInfinity}) == "");
}

TEST_CASE("NaN in one part makes its row NaN, and masked it reaches nothing") {
  Given given = given_scores(1, {0, kNaN, 2}, {5, 7, 9});
  CHECK(test::unlike_in_both({split_way({1, 1}, 3), split_way({1, 1}, 2)}, given, {kNaN}, {kNaN}) == "");
  given = given_scores(1, {0, -kInfinity, -kInfinity}, {5, kNaN, kInfinity});
  CHECK(test::unlike_in_both({split_way({1, 1}, 3), split_way({1, 1}, 2)}, given, {5}, {0}) == "");
}

TEST_CASE("the number of threads changes no bit, and neither does running again") {
  const Problem p{.batch = 2, .heads = 6, .kv_heads = 2, .seq = 21, .kv_seq = 50, .head_dim = 5};
  RandomNumbers random(66);
  const Inputs<float> inputs = converted<float>(drawn_inputs(p, random, 2));
  Problem single = p;
  single.storage = NumberType::fp32;
  const Method method{.algorithm = Algorithm::split_kv, .tiling = {8, 4}, .splits = 5};
  const Outputs<float> alone = attend<float>(single, method, {}, inputs);
  for (const int threads : {1, 2, 7}) {
    CHECK(same_bits(attend<float>(single, method, {}, inputs, {.threads = threads}), alone));
  }
}

TEST_CASE("without rescaling a part is wrong within itself, and one tile a part has nothing to rescale") {
  // Rising scores, a tile of one key each.
  const Given given = given_scores(1, {0, std::log(3.0)}, {0, 1});
  const Switches switches{.rescale = false};
  CHECK(test::unlike_in_both({split_way({1, 1}, 1)}, given, {0.5}, {1.791759469228055}, switches) == "");
  CHECK(test::unlike_in_both({split_way({1, 1}, 2)}, given, {0.75}, {std::log(4.0)}, switches) == "");
}

TEST_CASE("a broken part is told by its row, its packed tile and the keys of the part") {
  // Head 1 of the group alone is broken: its scores rise within the second part.
  Problem p{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 2, .kv_seq = 4, .head_dim = 1, .causal = false};
  p.storage = NumberType::fp64;
  Inputs<double> inputs{.v = Tensor4<double>(1, 1, 4, 1), .scores = Tensor4<double>(1, 2, 2, 4)};
  inputs.v.data() = {1, 2, 3, 4};
  inputs.scores.matrix(0, 1)(1, 3) = 2;
  const Switches switches{.rescale = false};
  const Method method{.algorithm = Algorithm::split_kv, .tiling = {1, 1}, .splits = 2};
  const auto outputs = attend<double>(p, method, switches, inputs);
  const Verification found = verify(p, method, switches, inputs, outputs);
  REQUIRE(found.first_wrong_row());
  const auto fault = first_fault(p, method, switches, inputs, found);
  REQUIRE(fault);
  CHECK(fault->place == RowPlace{0, 1, 1});
  CHECK(fault->query_tile == 3);
  REQUIRE(fault->key_tile);
  CHECK(*fault->key_tile == 3);
  // Over keys 2 and 3 alone.
  CHECK(fault->expected == Approx((3 + 4 * std::exp(2.0)) / (1 + std::exp(2.0))));
}

}  // namespace
}  // namespace flashsim
