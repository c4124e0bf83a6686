#include "core/problem/algorithm.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

TEST_CASE("every algorithm is found by its name, and flash is flash2") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CHECK(algorithm_named(facts.name).value() == facts.algorithm);
    CHECK(facts_of(facts.algorithm).name == facts.name);
    CHECK_FALSE(facts.title.empty());
    CHECK_FALSE(facts.summary.empty());
  }
  CHECK(algorithm_named("flash").value() == Algorithm::flash2);
}

TEST_CASE("an unknown algorithm is told with the nearest one") {
  const auto found = algorithm_named("standart");
  CHECK(test::message_of(found) == "unknown algorithm 'standart'");
  CHECK(test::hint_of(found).starts_with("did you mean 'standard'? known: "));
  CHECK(test::message_of(algorithm_named("")) == "unknown algorithm ''");
}

TEST_CASE("the tiled algorithms are those that keep the scores on the chip") {
  CHECK_FALSE(facts_of(Algorithm::standard).tiled);
  CHECK_FALSE(facts_of(Algorithm::eager).tiled);
  CHECK(facts_of(Algorithm::flash1).tiled);
  CHECK(facts_of(Algorithm::flash2).tiled);
}

}  // namespace
}  // namespace flashsim
