// The vector code's exponential against long double, for every instruction set.
#include "core/attention/vector/tile_kernels.hpp"

#include <vector>

#include "tests/attention/vector_targets.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::element_of;
using test::exponentials_of;
using test::for_every_target;
using test::kInfinite;
using test::kNone;
using test::RandomNumbers;
using test::same;

/// The unit of the last place of T at `value`.
template <class T>
long double last_place(long double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int least = std::numeric_limits<T>::min_exponent;
  return std::ldexp(1.0L, std::max(exponent, least) - std::numeric_limits<T>::digits);
}

/// Numbers from `least` to `most`, `count` of them, not evenly spaced to the last bit.
template <class T>
std::vector<T> samples(double least, double most, int count, std::uint64_t seed) {
  RandomNumbers random(seed);
  std::vector<T> x;
  const double step = (most - least) / count;
  for (int i = 0; i < count; ++i) {
    x.push_back(static_cast<T>(least + step * (i + 0.5) + random.next(step / 2)));
  }
  x.push_back(static_cast<T>(least));
  x.push_back(static_cast<T>(most));
  return x;
}

/// The largest error of exp over `x`, in units of the last place.
template <class T, class Exact>
double worst_error(const TileKernels<T>& kernels, const std::vector<T>& x, Exact exact) {
  const std::vector<T> got = exponentials_of(kernels, x);
  long double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double expected = exact(x[i]);
    const long double error = std::fabs(got[i] - expected) / last_place<T>(expected);
    if (!(error <= worst)) worst = error;
  }
  return static_cast<double>(worst);
}

TEST_CASE("exp is within two units of the last place, subnormal results too") {
  const auto exact_float = [](float x) { return static_cast<long double>(std::exp(double{x})); };
  const auto exact_double = [](double x) { return std::exp(static_cast<long double>(x)); };
  const auto floats = samples<float>(-104, 88.7228, 300000, 5);
  const auto tiny_floats = samples<float>(-103.97, -87.33, 30000, 6);
  const auto large_floats = samples<float>(87.9, 88.7228, 30000, 22);
  const auto near_zero = samples<float>(-1, 1, 30000, 7);
  const auto doubles = samples<double>(-745, 709.78, 100000, 8);
  const auto large_doubles = samples<double>(705.9, 709.78, 30000, 23);
  const auto tiny_doubles = samples<double>(-745.13, -708.4, 20000, 9);
  for (const auto* kernels : tile_kernels_of_every_target<float>()) {
    INFO(kernels->target);
    CHECK(worst_error(*kernels, floats, exact_float) <= 2);
    CHECK(worst_error(*kernels, tiny_floats, exact_float) <= 2);
    CHECK(worst_error(*kernels, large_floats, exact_float) <= 2);
    CHECK(worst_error(*kernels, near_zero, exact_float) <= 2);
  }
  for (const auto* kernels : tile_kernels_of_every_target<double>()) {
    INFO(kernels->target);
    CHECK(worst_error(*kernels, doubles, exact_double) <= 2);
    CHECK(worst_error(*kernels, large_doubles, exact_double) <= 2);
    CHECK(worst_error(*kernels, tiny_doubles, exact_double) <= 2);
  }
}

TEST_CASE("exp where there is nothing to compute") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    // The largest x whose exp T holds, and the least whose exp isn't 0.
    const T most = sizeof(T) == 4 ? T(88.722831726) : T(709.782712893383973);
    const T least = sizeof(T) == 4 ? T(-103.97) : T(-745.13);
    const T above = std::nextafter(most, kInfinite<T>);
    const std::vector<T> got = exponentials_of<T>(
        kernels, {T(0), T(-0.0), kInfinite<T>, -kInfinite<T>, kNone<T>, -kNone<T>, most, above, T(1e30),
                  least, T(sizeof(T) == 4 ? -103.98 : -745.14), T(-1e30), std::numeric_limits<T>::lowest()});
    CHECK(same(got[0], T(1)));
    CHECK(same(got[1], T(1)));
    CHECK(got[2] == kInfinite<T>);
    CHECK(same(got[3], T(-0.0)));  // no weight, which no exponential gives
    CHECK(std::isnan(got[4]));
    CHECK(std::isnan(got[5]));
    CHECK(got[6] > std::numeric_limits<T>::max() * T(0.99));
    CHECK(std::isfinite(got[6]));
    CHECK(got[7] == kInfinite<T>);
    CHECK(got[8] == kInfinite<T>);
    CHECK(got[9] == std::numeric_limits<T>::denorm_min());
    // Too small for T is +0, a weight still.
    CHECK(same(got[10], T(0)));
    CHECK(same(got[11], T(0)));
    CHECK(same(got[12], T(0)));
  });
}

TEST_CASE("exp of a number doesn't depend on its neighbours") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    const std::vector<T> x = samples<T>(-80, 80, 500, 10);
    const std::vector<T> alone = exponentials_of(kernels, x);
    // One that needs help lies beside each.
    std::vector<T> between;
    for (const T each : x) {
      between.push_back(each);
      between.push_back(-kInfinite<T>);
    }
    const std::vector<T> mixed = exponentials_of(kernels, between);
    bool equal = true;
    for (std::size_t i = 0; i < x.size(); ++i) equal = equal && same(alone[i], mixed[2 * i]);
    CHECK(equal);
  });
}

}  // namespace
}  // namespace flashsim
