// What each switch and fault makes of small inputs, worked out by hand, in every algorithm where it means
// something.
#include <array>

#include "core/base/rounding.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_products;
using test::given_scores;
using test::kInfinity;
using test::one_query;
using test::unlike;
using test::unlike_in_both;
using test::Way;
using test::ways;

constexpr Switches kNoRescale{.rescale = false};

Switches with(Fault fault) { return {.fault = fault}; }

/// The ways that `switches` mean something for.
std::vector<Way> meant(const Switches& switches, std::initializer_list<Tiling> tilings) {
  std::vector<Way> all = test::in_one_part(ways(tilings));
  std::erase_if(all, [&](const Way& way) { return check_switches(switches, way.algorithm).has_value(); });
  return all;
}
std::vector<Way> online(std::initializer_list<Tiling> tilings) {
  std::vector<Way> all = test::in_one_part(ways(tilings));
  std::erase_if(all, [](const Way& way) { return !test::is_online(way); });
  return all;
}
std::vector<Way> tiled(std::initializer_list<Tiling> tilings) {
  std::vector<Way> all = test::in_one_part(ways(tilings));
  std::erase_if(all, [](const Way& way) { return !test::is_tiled(way); });
  return all;
}
std::vector<Way> whole(std::initializer_list<Tiling> tilings) {
  std::vector<Way> all = ways(tilings);
  std::erase_if(all, [](const Way& way) { return test::is_tiled(way); });
  return all;
}

/// O and L of one query.
struct Row {
  double o, lse;
};

/// What a fault makes of the first one, two and three keys of S = [0, ln 2, ln 4], V = [1, 2, 4], a tile
/// each. The right m, l and unnormalised O are 0, 1, 1; ln 2, 3/2, 5/2; ln 4, 7/4, 21/4.
struct FaultRows {
  Switches switches;
  std::array<Row, 3> rows;
};

const double kLn2 = std::log(2.0);
const double kLn3 = std::log(3.0);
const double kLn4 = std::log(4.0);

std::vector<FaultRows> fault_rows() {
  return {
      {{}, {{{1, 0}, {5.0 / 3, kLn3}, {3, std::log(7.0)}}}},
      // l = 1, 2, 3 and O = 1, 3, 7: nothing is brought to the new maximum.
      {kNoRescale, {{{1, 0}, {1.5, kLn4}, {7.0 / 3, std::log(12.0)}}}},
      // l is right and O = 1, 3, 7.
      {with(Fault::rescale_l_only), {{{1, 0}, {2, kLn3}, {4, std::log(7.0)}}}},
      // O is right and l = 1, 2, 3.
      {with(Fault::rescale_o_only), {{{1, 0}, {1.25, kLn4}, {1.75, std::log(12.0)}}}},
      // r = 2 each time: l = 1, 3, 7 and O = 1, 4, 12.
      {with(Fault::inverted_rescale), {{{1, 0}, {4.0 / 3, std::log(6.0)}, {12.0 / 7, std::log(28.0)}}}},
      // Only the last tile is left.
      {with(Fault::reset_per_tile), {{{1, 0}, {2, kLn2}, {4, kLn4}}}},
  };
}

std::string text_of(const Switches& switches) {
  return switches.rescale ? std::string(name_of(switches.fault)) : "no-rescale";
}

TEST_CASE("each fault of the online softmax gives its own wrong result") {
  for (const FaultRows& each : fault_rows()) {
    INFO(text_of(each.switches));
    for (const Given& given : one_query({0, kLn2, kLn4}, {1, 2, 4})) {
      const Row& last = each.rows[2];
      CHECK(unlike_in_both(meant(each.switches, {{1, 1}, {4, 1}, {128, 1}}), given, {last.o}, {last.lse},
                           each.switches) == "");
      // One tile has nothing to rescale.
      const Row right = fault_rows()[0].rows[2];
      CHECK(unlike_in_both(meant(each.switches, {{1, 3}, {1, 128}}), given, {right.o}, {right.lse},
                           each.switches) == "");
    }
  }
}

TEST_CASE("falling maxima hide every fault but the reset") {
  for (const FaultRows& each : fault_rows()) {
    INFO(text_of(each.switches));
    const bool resets = each.switches.fault == Fault::reset_per_tile;
    for (const Given& given : one_query({kLn4, kLn2, 0}, {4, 2, 1})) {
      const double o = resets ? 1 : 3;
      const double lse = resets ? 0 : std::log(7.0);
      CHECK(unlike_in_both(online({{1, 1}, {4, 1}}), given, {o}, {lse}, each.switches) == "");
    }
  }
}

TEST_CASE("under a causal mask each row has the fault of the keys that it sees") {
  for (const FaultRows& each : fault_rows()) {
    INFO(text_of(each.switches));
    // Four queries of score s_j on three keys: bottom-right leaves the first row empty, top-left lets the
    // last row see no more than the third.
    Given given = given_products({1, 1, 1, 1}, {0, kLn2, kLn4}, {1, 2, 4});
    given.problem.causal = true;
    const auto& [one, two, three] = each.rows;
    CHECK(unlike_in_both(meant(each.switches, {{1, 1}}), given, {0, one.o, two.o, three.o},
                         {-kInfinity, one.lse, two.lse, three.lse}, each.switches) == "");
    given.problem.alignment = CausalAlignment::top_left;
    CHECK(unlike_in_both(meant(each.switches, {{1, 1}}), given, {one.o, two.o, three.o, three.o},
                         {one.lse, two.lse, three.lse, three.lse}, each.switches) == "");
  }
}

TEST_CASE("a tile that a row sees nothing of changes nothing but where it resets the row") {
  for (const FaultRows& each : fault_rows()) {
    if (each.switches.fault == Fault::reset_per_tile) continue;
    INFO(text_of(each.switches));
    // The four rows share their tiles.
    Given given = given_products({1, 1, 1, 1}, {0, kLn2, kLn4}, {1, 2, 4});
    given.problem.causal = true;
    const auto& [one, two, three] = each.rows;
    CHECK(unlike_in_both(meant(each.switches, {{4, 1}, {128, 1}}), given, {0, one.o, two.o, three.o},
                         {-kInfinity, one.lse, two.lse, three.lse}, each.switches) == "");
    given.problem.alignment = CausalAlignment::top_left;
    CHECK(unlike_in_both(meant(each.switches, {{4, 1}, {128, 1}}), given, {one.o, two.o, three.o, three.o},
                         {one.lse, two.lse, three.lse, three.lse}, each.switches) == "");
  }
  Given given = given_products({1, 1, 1}, {0, kLn2, kLn4}, {1, 2, 4});
  given.problem.causal = true;
  CHECK(unlike_in_both(online({{3, 1}}), given, {0, 0, 4}, {-kInfinity, -kInfinity, kLn4},
                       with(Fault::reset_per_tile)) == "");
}

TEST_CASE("the published example of a lost rescale and of a lost state") {
  for (const Given& rising : one_query({0, kLn3}, {0, 1})) {
    CHECK(unlike_in_both(online({{1, 1}}), rising, {0.75}, {1.386294361119891}) == "");
    CHECK(unlike_in_both(meant(kNoRescale, {{1, 1}}), rising, {0.5}, {1.791759469228055}, kNoRescale) == "");
    CHECK(unlike_in_both(online({{1, 1}}), rising, {1.0}, {1.098612288668110}, with(Fault::reset_per_tile)) ==
          "");
  }
  for (const Given& falling : one_query({kLn3, 0}, {1, 0})) {
    CHECK(unlike_in_both(online({{1, 1}}), falling, {0.75}, {1.386294361119891}, kNoRescale) == "");
  }
}

TEST_CASE("a finite stand-in for −∞ outweighs scores below it") {
  Given given = given_products({-20000, 0}, {1, 0}, {1, 100});
  given.problem.causal = true;
  const std::initializer_list<Tiling> kSharedTiles{{2, 1}, {2, 2}, {128, 128}};
  for (const std::vector<Way>& all : {tiled(kSharedTiles), whole({{1, 1}, {2, 1}, {2, 2}, {128, 128}})}) {
    // exp(−20000 + 10000) is 0: the masked key has all the weight.
    CHECK(unlike_in_both(all, given, {100, 50.5}, {-10000, kLn2}, with(Fault::finite_mask)) == "");
    CHECK(unlike_in_both(all, given, {1, 50.5}, {-20000, kLn2}) == "");
  }
  // A tile that is masked whole isn't visited, and so can't do harm.
  CHECK(unlike_in_both(tiled({{1, 1}}), given, {1, 50.5}, {-20000, kLn2}, with(Fault::finite_mask)) == "");
}

TEST_CASE("a finite stand-in makes an empty row the mean of all that is masked, and leaves ordinary rows") {
  Given given = given_products({0, 0, 0, 0, 0}, {0, 0}, {1, 3});
  given.problem.causal = true;
  const double far = -10000 + kLn2;
  // −10⁴ + ln 2 has a last place of 2⁻¹⁰ in float32.
  CHECK(unlike_in_both(ways({{5, 2}, {128, 128}}), given, {2, 2, 2, 1, 2}, {far, far, far, 0, kLn2},
                       with(Fault::finite_mask)) == "");
}

TEST_CASE("unmasked padding dilutes the last tile") {
  struct Length {
    std::int64_t n;
    double o, lse;
  };
  // 64 keys are filled up to 128, and 192 to 256, with zero keys and values.
  for (const auto& [n, o, lse] : {Length{64, 0.5, std::log(128.0)}, Length{192, 0.75, std::log(256.0)}}) {
    const auto count = static_cast<std::size_t>(n);
    const Given given = given_products(std::vector<double>(count, 0), std::vector<double>(count, 0),
                                       std::vector<double>(count, 1));
    const std::vector<double> all_o(count, o), all_lse(count, lse);
    INFO(n << " keys");
    CHECK(unlike_in_both(tiled({{128, 128}, {5, 128}}), given, all_o, all_lse,
                         with(Fault::unmasked_padding)) == "");
    // Tiles that are full have no padding.
    CHECK(unlike_in_both(tiled({{128, 64}}), given, std::vector<double>(count, 1),
                         std::vector<double>(count, std::log(static_cast<double>(n))),
                         with(Fault::unmasked_padding), static_cast<double>(n)) == "");
  }
}

TEST_CASE("unmasked padding under a causal mask shows where the diagonal lies beyond the keys") {
  // Top-left, four queries on two keys in a tile of four: rows 2 and 3 see one and two keys of padding.
  Given given = given_products({0, 0, 0, 0}, {0, 0}, {1, 3});
  given.problem.causal = true;
  given.problem.alignment = CausalAlignment::top_left;
  CHECK(unlike_in_both(tiled({{1, 4}, {4, 4}}), given, {1, 2, 4.0 / 3, 1}, {0, kLn2, kLn3, kLn4},
                       with(Fault::unmasked_padding)) == "");
  // Bottom-right the last row sees the last key and no more.
  given.problem.alignment = CausalAlignment::bottom_right;
  CHECK(unlike_in_both(tiled({{1, 4}, {4, 4}}), given, {0, 0, 1, 2}, {-kInfinity, -kInfinity, 0, kLn2},
                       with(Fault::unmasked_padding)) == "");
}

TEST_CASE("every fault leaves the algorithms that it means nothing for as they are") {
  const Given given = given_scores(1, {0, kLn2, kLn4}, {1, 2, 4});
  for (const FaultFacts& facts : kFaults) {
    INFO(facts.name);
    std::vector<Way> others = ways({{1, 1}, {1, 2}, {128, 128}});
    std::erase_if(others, [&](const Way& way) { return !check_switches(with(facts.fault), way.algorithm); });
    CHECK(unlike_in_both(others, given, {3}, {std::log(7.0)}, with(facts.fault)) == "");
  }
}

/// `given`, rounded to a storage type, computed in T.
template <class T>
Outputs<T> stored_in(NumberType storage, const Way& way, Given given, bool accumulate_in_storage) {
  given.problem.storage = storage;
  Inputs<T> inputs = converted<T>(given.inputs);
  for (Tensor4<T>* tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.scores}) {
    round_to_storage(given.problem, *tensor);
  }
  return attend<T>(given.problem, way.method(), {.accumulate_in_storage = accumulate_in_storage}, inputs);
}

template <class T>
void check_range(const Way& way) {
  const Given given = given_scores(1, {0, 0, 0, 0}, std::vector<double>(4, 60000));
  INFO(test::text_of(way) << " " << name_of(test::number_type<T>()));
  const Outputs<T> right = stored_in<T>(NumberType::fp16, way, given, false);
  CHECK(test::unlike(right, {60000}, {kLn4}) == "");
  // 240000 is beyond fp16; P, where it is divided first, keeps the sum within it.
  const Outputs<T> wrong = stored_in<T>(NumberType::fp16, way, given, true);
  CHECK(test::unlike(wrong, {test::divides_output(way) ? kInfinity : 60000}, {kLn4}) == "");
  // bfloat16 reaches further, and 60000 is 59904 there.
  CHECK(test::unlike(stored_in<T>(NumberType::bf16, way, given, true), {59904}, {kLn4}) == "");
}

TEST_CASE("a sum beyond fp16's largest number is infinite where it is kept in fp16") {
  for (const Way& way : test::in_one_part(ways({{1, 1}, {1, 2}, {1, 3}, {128, 128}}))) {
    check_range<float>(way);
    check_range<double>(way);
  }
}

template <class T>
void check_stall(const Way& way) {
  const Given given = given_scores(1, std::vector<double>(4096, 0), std::vector<double>(4096, 1));
  INFO(test::text_of(way) << " " << name_of(test::number_type<T>()));
  for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
    CHECK(test::unlike(stored_in<T>(type, way, given, false), {1}, {8.317766166719343}) == "");
  }
  // l and PV stall alike, so O hides it.
  CHECK(test::unlike(stored_in<T>(NumberType::fp16, way, given, true), {1}, {7.624618986159398}) == "");
  CHECK(test::unlike(stored_in<T>(NumberType::bf16, way, given, true), {1}, {std::log(256.0)}) == "");
}

TEST_CASE("a sum of ones stalls at 2048 in fp16 and at 256 in bfloat16, and O hides it") {
  for (const Way& way : test::in_one_part(ways({{1, 1}, {1, 64}, {1, 1000}, {128, 128}, {1, 5000}}))) {
    const bool one_sum = way.tiling.key_rows == 1 || way.tiling.key_rows >= 4096;
    if (test::combines_parts(way) && !one_sum) continue;
    check_stall<float>(way);
    check_stall<double>(way);
  }
}

TEST_CASE("parts of 64 ones are exact, and so is their sum, in types where ones one by one stall") {
  const Given given = given_scores(1, std::vector<double>(4096, 0), std::vector<double>(4096, 1));
  for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
    const Way way{Algorithm::memory_efficient, {1, 64}};
    CHECK(test::unlike(stored_in<float>(type, way, given, true), {1}, {8.317766166719343}) == "");
  }
}

TEST_CASE("sums in the compute type are what they are without the switch") {
  const Given given = given_scores(1, {0.3, -1, 2}, {0.1, 0.7, -0.4});
  for (const Way& way : ways({{1, 1}, {1, 128}})) {
    INFO(test::text_of(way));
    const Outputs<float> with_switch = stored_in<float>(NumberType::fp32, way, given, true);
    CHECK(test::same_bits(with_switch, stored_in<float>(NumberType::fp32, way, given, false)));
  }
}

}  // namespace
}  // namespace flashsim
