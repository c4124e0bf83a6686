#include "core/account/closed_form/floor_sum.hpp"

#include <chrono>
#include <cstdint>
#include <random>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

Wide by_loop(std::int64_t n, std::int64_t m, std::int64_t a, std::int64_t b) {
  Wide sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += (a * i + b) / m;
  return sum;
}

TEST_CASE("a floor sum equals the loop, for every small n, m, a and b") {
  for (std::int64_t n = 0; n <= 9; ++n) {
    for (std::int64_t m = 1; m <= 9; ++m) {
      for (std::int64_t a = 0; a <= 12; ++a) {
        for (std::int64_t b = 0; b <= 12; ++b) {
          CAPTURE(n, m, a, b);
          REQUIRE((floor_sum(n, m, a, b) == by_loop(n, m, a, b)));
        }
      }
    }
  }
}

TEST_CASE("a floor sum equals the loop, for random numbers") {
  std::mt19937_64 random(7);
  for (int k = 0; k < 500; ++k) {
    const auto n = static_cast<std::int64_t>(random() % 2000);
    const auto m = static_cast<std::int64_t>(random() % 100'000 + 1);
    const auto a = static_cast<std::int64_t>(random() % 1'000'000);
    const auto b = static_cast<std::int64_t>(random() % 1'000'000);
    CAPTURE(n, m, a, b);
    REQUIRE((floor_sum(n, m, a, b) == by_loop(n, m, a, b)));
  }
}

TEST_CASE("a floor sum of 2^40 terms splits into two, and takes no time") {
  // Σ over the first k terms and Σ over the rest, which starts at b + a·k, make the whole.
  std::mt19937_64 random(11);
  const auto start = std::chrono::steady_clock::now();
  for (int n = 0; n < 1000; ++n) {
    const Wide terms = Wide(1) << 40;
    const Wide m = random() % (std::uint64_t{1} << 40) + 1;
    const Wide a = random() % (std::uint64_t{1} << 40);
    const Wide b = random() % (std::uint64_t{1} << 40);
    const Wide k = random() % (std::uint64_t{1} << 40);
    const Wide whole = floor_sum(terms, m, a, b);
    REQUIRE((whole == floor_sum(k, m, a, b) + floor_sum(terms - k, m, a, b + a * k)));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace flashsim
