#include "core/base/count.hpp"

#include <cstdint>
#include <limits>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() - 1;

TEST_CASE("a count holds every integer from 0 to 2^63 - 2 exactly") {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, (std::int64_t{1} << 53) + 1, kLargest}) {
    CHECK_FALSE(Count(n).overflowed());
    CHECK(Count(n).value() == n);
  }
}

TEST_CASE("a negative count is the overflowed count") {
  CHECK(Count(-1).overflowed());
  CHECK(Count(std::numeric_limits<std::int64_t>::min()).overflowed());
  CHECK((Count(2) - Count(3)).overflowed());
}

TEST_CASE("a count one past the largest is overflowed, whichever way it is reached") {
  CHECK((Count(kLargest) + Count(1)).overflowed());
  CHECK((Count(kLargest) + Count(kLargest)).overflowed());
  CHECK((Count(std::int64_t{1} << 32) * Count(std::int64_t{1} << 31)).overflowed());
  CHECK((Count(std::int64_t{1} << 62) * Count(4)).overflowed());  // 2^64, which would wrap to 0
  CHECK(Count::from_wide(Wide(kLargest) + 1).overflowed());
  CHECK(Count::from_wide(Wide(1) << 100).overflowed());
  CHECK(Count::from_wide(-1).overflowed());
}

TEST_CASE("a count that reaches the largest exactly isn't overflowed") {
  CHECK(Count(kLargest - 1) + Count(1) == Count(kLargest));
  CHECK(Count(kLargest / 2) * Count(2) == Count(kLargest));
  CHECK(Count::from_wide(Wide(kLargest)) == Count(kLargest));
}

TEST_CASE("an overflowed count stays overflowed in every later operation") {
  const Count lost = Count::overflow();
  for (const Count other : {Count(0), Count(1), Count(kLargest), lost}) {
    CHECK((lost + other).overflowed());
    CHECK((other + lost).overflowed());
    CHECK((lost - other).overflowed());
    CHECK((other - lost).overflowed());
    CHECK((lost * other).overflowed());
    CHECK((other * lost).overflowed());
  }
  Count sum;
  for (int i = 0; i < 10; ++i) sum += i == 3 ? lost : Count(i);
  CHECK(sum.overflowed());
}

TEST_CASE("counts that stay in range do ordinary arithmetic") {
  CHECK(Count(3) + Count(4) == Count(7));
  CHECK(Count(7) - Count(7) == Count(0));
  CHECK(Count(6) * Count(7) == Count(42));
  CHECK(Count(3) < Count(4));
  CHECK(Count(kLargest) < Count::overflow());
}

}  // namespace
}  // namespace flashsim
