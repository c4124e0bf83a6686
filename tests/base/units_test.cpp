#include "core/base/units.hpp"

#include <concepts>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Dividable = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

static_assert(Addable<Bytes, Bytes> && Addable<Flops, Flops> && Addable<Seconds, Seconds>);
static_assert(!Addable<Bytes, Flops> && !Addable<Flops, Bytes>);
static_assert(!Addable<Bytes, Seconds> && !Addable<Seconds, Bytes>);
static_assert(!Addable<Bytes, int> && !Addable<Bytes, Count>);
static_assert(!Addable<BytesPerSecond, FlopsPerSecond>);
static_assert(!Subtractable<Bytes, Flops>);
static_assert(!Comparable<Bytes, Flops> && !Comparable<Bytes, Seconds>);
static_assert(Multipliable<Bytes, Count> && Multipliable<Count, Bytes>);
static_assert(!Multipliable<Bytes, Bytes> && !Multipliable<Bytes, Flops>);
static_assert(!Dividable<Bytes, FlopsPerSecond> && !Dividable<Flops, BytesPerSecond>);
static_assert(!Dividable<Bytes, Flops> && !Dividable<Seconds, BytesPerSecond>);
static_assert(!std::convertible_to<std::int64_t, Bytes> && !std::convertible_to<Bytes, std::int64_t>);
static_assert(!std::convertible_to<Bytes, Flops> && !std::constructible_from<Flops, Bytes>);

static_assert(std::same_as<decltype(Bytes() / BytesPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Flops() / FlopsPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Flops() / Bytes(1)), FlopsPerByte>);
static_assert(std::same_as<decltype(FlopsPerSecond{1} / BytesPerSecond{1}), FlopsPerByte>);

TEST_CASE("an amount divided by a rate is a time") {
  CHECK((Bytes(3000) / BytesPerSecond{1000}).value == 3.0);
  CHECK((Flops(500) / FlopsPerSecond{1000}).value == 0.5);
  CHECK((Seconds{1.5} + Seconds{2}).value == 3.5);
}

TEST_CASE("work divided by bytes is an intensity, and so is a machine's balance") {
  CHECK((Flops(12) / Bytes(8)).value == 1.5);
  CHECK((FlopsPerSecond{300} / BytesPerSecond{2}).value == 150.0);
  CHECK(ratio(Bytes(7), Bytes(2)) == 3.5);
}

TEST_CASE("amounts overflow as their counts do, and stay overflowed") {
  const Bytes huge(std::int64_t{1} << 62);
  CHECK((huge + huge).overflowed());
  CHECK((huge * Count(2)).overflowed());
  CHECK((huge + huge - huge).overflowed());
  Bytes sum;
  for (int i = 0; i < 3; ++i) sum += huge;
  CHECK(sum.overflowed());
  CHECK((Count(2) * Bytes(21)).value() == 42);
}

}  // namespace
}  // namespace flashsim
