// Where a broken run first goes wrong.
#include "core/attention/first_fault.hpp"

#include "core/attention/attend.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_scores;
using test::kInfinity;

template <class T = float>
std::optional<FirstFault> fault_of(Algorithm algorithm, Tiling tiling, const Switches& switches,
                                   const Given& given) {
  Problem problem = given.problem;
  problem.storage = test::number_type<T>();
  const Inputs<T> inputs = converted<T>(given.inputs);
  const Outputs<T> outputs = attend<T>(algorithm, problem, tiling, switches, inputs);
  const Verification verification = verify(algorithm, problem, tiling, switches, inputs, outputs);
  return first_fault(algorithm, problem, tiling, switches, inputs, verification);
}

const Switches kNoRescale{.rescale = false};

TEST_CASE("without rescaling the fault is in the first tile whose maximum rises") {
  // Row 0 never rises; row 1 rises at its third tile of two keys, and again at the fourth.
  const Given given =
      given_scores(2, {5, 1, 2, 3, 4, 1, 0, 0, 2, 1, 2, 1, 4, 1, 6, 0}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
    for (const std::int64_t br : {1, 2}) {
      const auto fault = fault_of(algorithm, {br, 2}, kNoRescale, given);
      REQUIRE(fault);
      CHECK(fault->place == RowPlace{0, 0, 1});
      CHECK(fault->query_tile == (br == 1 ? 1 : 0));
      REQUIRE(fault->key_tile);
      CHECK(*fault->key_tile == 2);
      CHECK(fault->column == 0);
      // Weights 1, e⁻¹, 1, e⁻¹ against 2, and 1, e⁻³ against 4; right would be e⁻², e⁻³, e⁻², e⁻³, 1, e⁻³.
      const double a = 1 * 1 + std::exp(-1) * 2 + 1 * 3 + std::exp(-1) * 4;
      const double b = 2 + 2 * std::exp(-1);
      const double r = std::exp(-2);
      const double last = 5 + 6 * std::exp(-3);
      const double weight = 1 + std::exp(-3);
      CHECK(std::fabs(fault->got - (a + last) / (b + weight)) < 1e-5);
      CHECK(std::fabs(fault->expected - (r * a + last) / (r * b + weight)) < 1e-12);
      CHECK(fault->tolerance < 1e-4);
    }
  }
}

TEST_CASE("where O is right by chance, L gives the fault away") {
  // All values are equal, so O is 3 whatever the weights.
  const auto fault = fault_of(Algorithm::flash2, {1, 1}, kNoRescale, given_scores(1, {0, 1, 2}, {3, 3, 3}));
  REQUIRE(fault);
  CHECK(fault->key_tile == 1);
  CHECK_FALSE(fault->column);
  CHECK(std::fabs(fault->got - (1 + std::log(2.0))) < 1e-6);
  CHECK(std::fabs(fault->expected - std::log(1 + std::exp(1.0))) < 1e-12);
}

TEST_CASE("heads, batches and causal rows are told, and masked keys aren't looked at") {
  Problem problem{.batch = 2,
                  .heads = 2,
                  .kv_heads = 1,
                  .seq = 6,
                  .kv_seq = 6,
                  .head_dim = 1,
                  .causal = true,
                  .scale = 1};
  Given given{problem};
  given.inputs = {
      .q = Tensor4<double>(2, 2, 6, 1), .k = Tensor4<double>(2, 1, 6, 1), .v = Tensor4<double>(2, 1, 6, 1)};
  given.inputs.k.matrix(1, 0)(3, 0) = 2;  // only there does a maximum rise
  given.inputs.k.matrix(1, 0)(5, 0) = std::nan("");
  given.inputs.q.matrix(1, 1)(4, 0) = 1;
  for (std::int64_t key = 0; key < 6; ++key) given.inputs.v.matrix(1, 0)(key, 0) = static_cast<double>(key);
  const auto fault = fault_of(Algorithm::flash2, {2, 2}, kNoRescale, given);
  REQUIRE(fault);
  CHECK(fault->place == RowPlace{1, 1, 4});
  CHECK(fault->query_tile == 2);
  CHECK(fault->key_tile == 1);
}

TEST_CASE("scores far apart, and leading −∞, have their prefixes right") {
  const Given far = given_scores(1, {-kInfinity, -2000, -1000, 0, 900, 901}, {1, 2, 3, 4, 5, 6});
  // Nothing is wrong: no fault.
  CHECK_FALSE(fault_of(Algorithm::flash2, {1, 1}, {}, far));
  const auto fault = fault_of(Algorithm::flash2, {1, 1}, kNoRescale, far);
  REQUIRE(fault);
  CHECK(fault->key_tile == 2);
  CHECK(std::fabs(fault->expected - 3) < 1e-12);
  CHECK(std::fabs(fault->got - 2.5) < 1e-6);
}

TEST_CASE(
    "without subtracting the maximum the overflow is found in its tile, or in the row where there are none") {
  const Given given = given_scores(1, {1, 2, 3, 100}, {1, 2, 3, 4});
  const Switches switches{.subtract_max = false};
  const auto tiled = fault_of(Algorithm::flash2, {1, 1}, switches, given);
  REQUIRE(tiled);
  CHECK(tiled->key_tile == 3);
  CHECK(std::isnan(tiled->got));
  const auto whole = fault_of(Algorithm::standard, {1, 1}, switches, given);
  REQUIRE(whole);
  CHECK_FALSE(whole->key_tile);
  CHECK(whole->column == 0);
  CHECK(whole->place == RowPlace{0, 0, 0});
}

TEST_CASE("a result that was spoilt after the last tile has a fault without a key tile") {
  const Given given = given_scores(2, {1, 2, 3, 4}, {1, 2});
  Problem problem = given.problem;
  const Inputs<double> inputs = given.inputs;
  Outputs<double> outputs = attend<double>(Algorithm::flash2, problem, {1, 1}, {}, inputs);
  outputs.o.data()[1] = 17;
  const Verification verification = verify(Algorithm::flash2, problem, {1, 1}, {}, inputs, outputs);
  const auto fault = first_fault(Algorithm::flash2, problem, {1, 1}, {}, inputs, verification);
  REQUIRE(fault);
  CHECK(fault->place == RowPlace{0, 0, 1});
  CHECK_FALSE(fault->key_tile);
  CHECK(fault->got == 17);
}

}  // namespace
}  // namespace flashsim
