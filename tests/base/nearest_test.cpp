#include "core/base/nearest.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

const std::vector<std::string> kKnown{"standard", "eager", "flash1", "flash2"};

TEST_CASE("one slip of the fingers finds the name that was meant") {
  CHECK(nearest_name("standrd", kKnown) == "standard");    // left out
  CHECK(nearest_name("standaard", kKnown) == "standard");  // typed twice
  CHECK(nearest_name("stanfard", kKnown) == "standard");   // wrong key
  CHECK(nearest_name("satndard", kKnown) == "standard");   // swapped
  CHECK(nearest_name("flash2", kKnown) == "flash2");
}

TEST_CASE("swapping neighbours is one edit, not two") {
  // Were it two, the two names would tie and the first would win.
  CHECK(nearest_name("abcd", {"abxx", "bacd"}) == "bacd");
}

TEST_CASE("of two names equally near the first is suggested") {
  CHECK(nearest_name("flash", {"flash1", "flash2"}) == "flash1");
}

TEST_CASE("a name that is near to none gets no suggestion") {
  CHECK(nearest_name("quadratic", kKnown).empty());
  CHECK(nearest_name("xyz", kKnown).empty());
  CHECK(nearest_name("flash", {}).empty());
  CHECK(nearest_name(std::string(100'000, 'a'), {std::string(100'000, 'a')}).empty());
}

TEST_CASE("an unknown name is told with the nearest one and with all") {
  const Error near = unknown_name("algorithm", "egaer", kKnown);
  CHECK(near.message == "unknown algorithm 'egaer'");
  CHECK(near.hint == "did you mean 'eager'? known: standard, eager, flash1, flash2");
  const Error far = unknown_name("algorithm", "quadratic", kKnown);
  CHECK(far.message == "unknown algorithm 'quadratic'");
  CHECK(far.hint == "known: standard, eager, flash1, flash2");
}

}  // namespace
}  // namespace flashsim
