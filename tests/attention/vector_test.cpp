// Every operation of the vector code against plain scalar code, for every instruction set that the machine
// has.
#include "core/attention/vector/tile_kernels.hpp"

#include <bit>
#include <string_view>

#include "core/attention/vector/panel.hpp"
#include "core/base/rounding.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::RandomNumbers;
using test::same_bits;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr T kInfinite = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr std::int64_t kWidth = kPanelWidth<T>;

/// A target without fused multiply-adds rounds twice.
template <class T>
bool fuses(const TileKernels<T>& kernels) {
  const std::string_view target = kernels.target;
  return target != "SSE2" && target != "EMU128" && target != "SCALAR";
}
template <class T>
T multiply_add(const TileKernels<T>& kernels, T a, T b, T sum) {
  if (fuses(kernels)) return std::fma(a, b, sum);
  const volatile T product = a * b;
  return product + sum;
}

template <class T>
bool is_no_weight(T x) {
  return x == T(0) && std::signbit(x);
}

template <class T>
AlignedVector<T> drawn(RandomNumbers& random, std::int64_t n, double magnitude = 2) {
  AlignedVector<T> numbers(static_cast<std::size_t>(n));
  for (T& number : numbers) number = static_cast<T>(random.next(magnitude));
  return numbers;
}

template <class T>
bool same(const AlignedVector<T>& a, const AlignedVector<T>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}
/// NaN has to meet NaN; and zeros have to have the same sign.
template <class T>
bool same(T a, T b) {
  return same_bits(&a, &b, 1);
}

/// Runs `look(kernels)` in float and double for every target.
template <class Look>
void for_every_target(Look look) {
  for (const TileKernels<float>* kernels : tile_kernels_of_every_target<float>()) {
    INFO("float, " << kernels->target);
    look(*kernels);
  }
  for (const TileKernels<double>* kernels : tile_kernels_of_every_target<double>()) {
    INFO("double, " << kernels->target);
    look(*kernels);
  }
}

/// The element type of the kernels.
template <class T>
T element_of(const TileKernels<T>&);

TEST_CASE("the kernels that run here are those of the best target") {
  const auto floats = tile_kernels_of_every_target<float>();
  REQUIRE_FALSE(floats.empty());
  CHECK(floats.front() == &tile_kernels<float>());
  CHECK(tile_kernels_of_every_target<double>().front() == &tile_kernels<double>());
  CHECK(std::string_view(floats.front()->target) == vector_target());
  for (std::size_t i = 1; i < floats.size(); ++i) CHECK(floats[i] != floats[i - 1]);
}

/// C = A B of one shape, with room around all three and A in either layout.
template <class T>
struct Matrices {
  Matrices(RandomNumbers& random, std::int64_t of_rows, std::int64_t of_columns, std::int64_t of_depth)
      : rows(of_rows),
        columns(of_columns),
        depth(of_depth),
        a(drawn<T>(random, rows * depth)),
        b(drawn<T>(random, depth * b_stride())),
        c(drawn<T>(random, rows * c_stride())) {}

  [[nodiscard]] std::int64_t b_stride() const { return columns + kWidth<T> / 2; }
  [[nodiscard]] std::int64_t c_stride() const { return columns + kWidth<T>; }
  [[nodiscard]] T& at_a(std::int64_t r, std::int64_t n) { return a[static_cast<std::size_t>(r * depth + n)]; }
  [[nodiscard]] T& at_b(std::int64_t n, std::int64_t x) {
    return b[static_cast<std::size_t>(n * b_stride() + x)];
  }

  /// The product into a copy of C; `along`: A's rows lie side by side.
  template <class Run>
  AlignedVector<T> run(bool along, typename Product<T>::Mode mode, T factor, Run multiply) const {
    const std::int64_t stride = (along ? rows : depth) + 3;
    AlignedVector<T> laid(static_cast<std::size_t>(stride * (along ? depth : rows)), kNone<T>);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < depth; ++n) {
        laid[static_cast<std::size_t>(along ? n * stride + r : r * stride + n)] =
            a[static_cast<std::size_t>(r * depth + n)];
      }
    }
    AlignedVector<T> result = c;
    multiply(Product<T>{.c = result.data(),
                        .c_stride = c_stride(),
                        .a = laid.data(),
                        .a_row = along ? 1 : stride,
                        .a_step = along ? stride : 1,
                        .b = b.data(),
                        .b_stride = b_stride(),
                        .rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .mode = mode,
                        .factor = factor});
    return result;
  }

  /// What that must be: `chain(sum, a, b)` is one step of it.
  template <class Chain>
  AlignedVector<T> expected(const TileKernels<T>& kernels, typename Product<T>::Mode mode, T factor,
                            Chain chain) {
    using Mode = typename Product<T>::Mode;
    AlignedVector<T> result = c;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t x = 0; x < columns; ++x) {
        T& element = result[static_cast<std::size_t>(r * c_stride() + x)];
        T sum = mode == Mode::add ? element : T(0);
        for (std::int64_t n = 0; n < depth; ++n) sum = chain(sum, at_a(r, n), at_b(n, x));
        element = mode == Mode::add      ? sum
                  : mode == Mode::assign ? sum * factor
                                         : multiply_add(kernels, sum, factor, element);
      }
    }
    return result;
  }

  std::int64_t rows, columns, depth;
  AlignedVector<T> a, b, c;
};

TEST_CASE("a product is one chain of multiply-adds an element, in every shape, mode and layout") {
  RandomNumbers random(1);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    std::string wrong;
    for (std::int64_t rows = 1; rows <= 20; ++rows) {
      for (std::int64_t depth = 1; depth <= 20; ++depth) {
        // One, two and three of the widest vectors; of narrower ones more.
        for (std::int64_t columns = kWidth<T> / 2; columns <= 3 * kWidth<T> / 2; columns += kWidth<T> / 2) {
          // Every shape in one of the modes, and in turn.
          const Mode mode =
              std::array{Mode::assign, Mode::add,
                         Mode::add_scaled}[static_cast<std::size_t>((rows + depth + columns) % 3)];
          Matrices<T> m(random, rows, columns, depth);
          const AlignedVector<T> expected = m.expected(
              kernels, mode, T(0.3), [&](T sum, T a, T b) { return multiply_add(kernels, a, b, sum); });
          for (const bool along : {false, true}) {
            if (!same(m.run(along, mode, T(0.3), kernels.product), expected) && wrong.empty()) {
              wrong = fmt::format("{} × {} × {}, mode {}, along {}", rows, columns, depth,
                                  static_cast<int>(mode), along);
            }
          }
        }
      }
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("every mode of a product holds at the shapes where blocks end") {
  RandomNumbers random(2);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 15, 17}) {
      for (const Mode mode : {Mode::assign, Mode::add, Mode::add_scaled}) {
        for (const bool along : {false, true}) {
          Matrices<T> m(random, rows, kWidth<T> / 2, 5);
          INFO(rows << " rows, mode " << static_cast<int>(mode) << ", along " << along);
          CHECK(same(m.run(along, mode, T(-1.7), kernels.product),
                     m.expected(kernels, mode, T(-1.7),
                                [&](T sum, T a, T b) { return multiply_add(kernels, a, b, sum); })));
        }
      }
    }
  });
}

TEST_CASE("a careful product leaves out what has no weight, and rounds at every addition") {
  RandomNumbers random(3);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    std::string wrong;
    for (const WeightsIn weights : {WeightsIn::neither, WeightsIn::a, WeightsIn::b}) {
      for (const NumberType type : {NumberType::fp64, NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
        for (int i = 0; i < 40; ++i) {
          Matrices<T> m(random, random.from_to(1, 20), kWidth<T> / 2 * random.from_to(1, 3),
                        random.from_to(1, 20));
          const Mode mode = i % 2 == 0 ? Mode::add : Mode::add_scaled;
          const auto chain = [&](T sum, T a, T b) {
            if (is_no_weight(weights == WeightsIn::a ? a : b) && weights != WeightsIn::neither) return sum;
            return stored_as(type, multiply_add(kernels, a, b, sum));
          };
          // Some weights are nothing, and what stands across from one of those is NaN or infinite.
          if (weights == WeightsIn::a) {
            const std::int64_t n = random.from_to(0, m.depth - 1);
            for (std::int64_t r = 0; r < m.rows; ++r) {
              if (r % 3 != 0) m.at_a(r, n) = T(-0.0);
            }
            m.at_b(n, random.from_to(0, m.columns - 1)) = i % 4 == 0 ? kInfinite<T> : kNone<T>;
          }
          if (weights == WeightsIn::b) {
            const std::int64_t n = random.from_to(0, m.depth - 1);
            for (std::int64_t x = 0; x < m.columns; ++x) {
              if (x % 3 != 0) m.at_b(n, x) = T(-0.0);
            }
            m.at_a(random.from_to(0, m.rows - 1), n) = i % 4 == 0 ? kInfinite<T> : kNone<T>;
          }
          const AlignedVector<T> expected = m.expected(kernels, mode, T(0.7), chain);
          for (const bool along : {false, true}) {
            const AlignedVector<T> got = m.run(
                along, mode, T(0.7), [&](const Product<T>& p) { kernels.careful_product(p, weights, type); });
            if (!same(got, expected) && wrong.empty()) {
              wrong = fmt::format("weights {}, {}, run {}", static_cast<int>(weights), name_of(type), i);
            }
          }
        }
      }
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("a weight of +0 is a weight: NaN shows behind it, and not behind −0") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    RandomNumbers random(4);
    Matrices<T> m(random, 1, kWidth<T> / 2, 1);
    m.at_a(0, 0) = kNone<T>;
    for (std::int64_t x = 0; x < m.columns; ++x) m.at_b(0, x) = x % 2 == 0 ? T(0) : T(-0.0);
    const AlignedVector<T> got = m.run(false, Mode::add, 1, [&](const Product<T>& p) {
      kernels.careful_product(p, WeightsIn::b, NumberType::fp64);
    });
    bool right = true;
    for (std::int64_t x = 0; x < m.columns; ++x) {
      const auto at = static_cast<std::size_t>(x);
      right = right && (x % 2 == 0 ? std::isnan(got[at]) : same(got[at], m.c[at]));
    }
    CHECK(right);
  });
}

/// exp of each of `x`.
template <class T>
std::vector<T> exponentials_of(const TileKernels<T>& kernels, const std::vector<T>& x) {
  const std::size_t whole = (x.size() + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  AlignedVector<T> in(whole), out(whole);
  std::copy(x.begin(), x.end(), in.begin());
  kernels.exponential(in.data(), static_cast<std::int64_t>(whole), out.data());
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(x.size())};
}

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

TEST_CASE("scores are scaled, and masked from each query's own key on") {
  RandomNumbers random(11);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t keys : {1, 2, 5, 33}) {
      INFO(keys << " keys");
      AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>);
      s[0] = kNone<T>;
      AlignedVector<T> expected = s;
      for (T& each : expected) each *= T(0.37);
      kernels.scale(s.data(), keys * kWidth<T>, T(0.37));
      CHECK(same(s, expected));

      AlignedVector<T> visible(static_cast<std::size_t>(kWidth<T>));
      for (std::int64_t q = 0; q < kWidth<T>; ++q) {
        visible[static_cast<std::size_t>(q)] = static_cast<T>(q == 0 ? keys : random.from_to(0, keys));
      }
      for (const T stand_in : {-kInfinite<T>, T(-1e4)}) {
        AlignedVector<T> masked = s;
        kernels.mask(masked.data(), keys, visible.data(), stand_in);
        bool right = true;
        for (std::int64_t c = 0; c < keys; ++c) {
          for (std::int64_t q = 0; q < kWidth<T>; ++q) {
            const auto at = static_cast<std::size_t>(c * kWidth<T> + q);
            const bool hidden = static_cast<T>(c) >= visible[static_cast<std::size_t>(q)];
            right = right && same(masked[at], hidden ? stand_in : s[at]);
          }
        }
        CHECK(right);
      }
    }
  });
}

TEST_CASE("the maximum passes over NaN, and starts from what it was") {
  RandomNumbers random(12);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t keys : {1, 2, 5, 33}) {
      AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>);
      AlignedVector<T> m = drawn<T>(random, kWidth<T>);
      AlignedVector<T> expected = m;
      for (std::int64_t q = 0; q < kWidth<T>; ++q) {
        if (q % 3 == 0) m[static_cast<std::size_t>(q)] = -kInfinite<T>;
        T most = m[static_cast<std::size_t>(q)];
        for (std::int64_t c = 0; c < keys; ++c) {
          T& each = s[static_cast<std::size_t>(c * kWidth<T> + q)];
          if (q % 4 == 0 && c % 2 == 0) each = kNone<T>;
          if (q % 8 == 1) each = -kInfinite<T>;
          if (q % 8 == 2 && c == 0) each = kInfinite<T>;
          if (!std::isnan(each)) most = std::max(most, each);
        }
        expected[static_cast<std::size_t>(q)] = most;
      }
      kernels.maximum(s.data(), keys, m.data());
      INFO(keys << " keys");
      CHECK(same(m, expected));
    }
  });
}

TEST_CASE("weights are summed in order before they are rounded") {
  RandomNumbers random(13);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const NumberType type : {NumberType::fp64, NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      for (const std::int64_t keys : {1, 2, 5, 33}) {
        AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>, 12);
        AlignedVector<T> subtracted = drawn<T>(random, kWidth<T>, 12);
        s[3] = -kInfinite<T>;
        s[4] = kNone<T>;
        subtracted[5] = 0;
        s[6] = -kInfinite<T>;
        subtracted[6] = kNone<T>;  // the row is NaN, and the masked key has no weight all the same
        std::vector<T> differences;
        for (std::size_t at = 0; at < s.size(); ++at) {
          differences.push_back(s[at] - subtracted[at % static_cast<std::size_t>(kWidth<T>)]);
        }
        std::vector<T> p = exponentials_of(kernels, differences);
        p[6] = T(-0.0);
        AlignedVector<T> sum(subtracted.size()), stored(s.size());
        for (std::size_t at = 0; at < p.size(); ++at) {
          sum[at % static_cast<std::size_t>(kWidth<T>)] += p[at];
          stored[at] = stored_as(type, p[at]);
        }
        AlignedVector<T> got_sum(subtracted.size(), kNone<T>);
        kernels.exponentials(s.data(), keys, subtracted.data(), got_sum.data(), type);
        INFO(keys << " keys, " << name_of(type));
        CHECK(same(s, stored));
        CHECK(same(got_sum, sum));

        AlignedVector<T> rounded = drawn<T>(random, kWidth<T>);
        AlignedVector<T> expected = rounded;
        for (std::size_t at = 0; at < p.size(); ++at) {
          T& each = expected[at % static_cast<std::size_t>(kWidth<T>)];
          each = stored_as(type, each + stored[at]);
        }
        kernels.rounded_sum(s.data(), keys, rounded.data(), type);
        CHECK(same(rounded, expected));
      }
    }
  });
}

TEST_CASE("O is multiplied and divided query by query") {
  RandomNumbers random(14);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 3, 20}) {
      AlignedVector<T> o = drawn<T>(random, rows * kWidth<T>);
      o[1] = kInfinite<T>;
      o[2] = kNone<T>;
      o[3] = T(-0.0);
      AlignedVector<T> by = drawn<T>(random, kWidth<T>);
      by[0] = 1;
      by[1] = 0;
      by[3] = kNone<T>;
      for (const bool ones : {false, true}) {
        if (ones) std::fill(by.begin(), by.end(), T(1));
        AlignedVector<T> product = o, quotient = o, got_product = o, got_quotient = o;
        for (std::size_t at = 0; at < o.size(); ++at) {
          product[at] *= by[at % by.size()];
          if (!is_no_weight(quotient[at])) quotient[at] /= by[at % by.size()];
        }
        kernels.multiply(got_product.data(), rows, by.data());
        kernels.divide(got_quotient.data(), rows, by.data());
        INFO(rows << " rows");
        CHECK(same(got_product, product));
        CHECK(same(got_quotient, quotient));
      }
    }
  });
}

TEST_CASE("a part of O is added times its query's factor") {
  RandomNumbers random(15);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 3, 20}) {
      AlignedVector<T> part = drawn<T>(random, rows * kWidth<T>);
      part[1] = kNone<T>;
      AlignedVector<T> factor = drawn<T>(random, kWidth<T>);
      factor[0] = 0;
      AlignedVector<T> got = drawn<T>(random, rows * kWidth<T>);
      AlignedVector<T> expected = got;
      for (std::size_t at = 0; at < part.size(); ++at) {
        expected[at] = multiply_add(kernels, part[at], factor[at % factor.size()], expected[at]);
      }
      kernels.add_multiple(part.data(), rows, factor.data(), got.data());
      INFO(rows << " rows");
      CHECK(same(got, expected));
    }
  });
}

TEST_CASE("the gradient of a score is nothing where it has no weight, whatever stands there") {
  RandomNumbers random(15);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const NumberType type : {NumberType::fp64, NumberType::fp16, NumberType::bf16}) {
      for (const std::int64_t keys : {1, 4, 33}) {
        AlignedVector<T> p = drawn<T>(random, keys * kWidth<T>);
        AlignedVector<T> ds = drawn<T>(random, keys * kWidth<T>);
        AlignedVector<T> delta = drawn<T>(random, kWidth<T>);
        p[0] = T(-0.0);
        ds[0] = kNone<T>;
        p[1] = T(-0.0);
        delta[1] = kInfinite<T>;
        p[2] = T(0);
        ds[2] = kNone<T>;
        AlignedVector<T> expected(ds.size());
        for (std::size_t at = 0; at < p.size(); ++at) {
          const T difference = ds[at] - delta[at % delta.size()];
          expected[at] = is_no_weight(p[at]) ? p[at] : stored_as(type, p[at] * difference);
        }
        kernels.score_gradient(p.data(), ds.data(), keys, delta.data(), type);
        INFO(keys << " keys, " << name_of(type));
        CHECK(same(ds, expected));
        CHECK(std::isnan(ds[2]));
      }
    }
  });
}

TEST_CASE("a dot product leaves out what has no weight") {
  RandomNumbers random(16);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 2, 5, 40}) {
      AlignedVector<T> a = drawn<T>(random, rows * kWidth<T>);
      AlignedVector<T> b = drawn<T>(random, rows * kWidth<T>);
      a[0] = T(-0.0);
      b[0] = kNone<T>;
      b[1] = kNone<T>;
      AlignedVector<T> sum(static_cast<std::size_t>(kWidth<T>)), got(sum.size(), kNone<T>);
      for (std::size_t at = 0; at < a.size(); ++at) {
        T& each = sum[at % sum.size()];
        if (!is_no_weight(a[at])) each = multiply_add(kernels, a[at], b[at], each);
      }
      kernels.dot(a.data(), b.data(), rows, got.data());
      INFO(rows << " rows");
      CHECK(same(got, sum));
      CHECK(std::isfinite(got[0]));
      CHECK(std::isnan(got[1]));
    }
  });
}

/// Every upper half of a float's bits, each with lower halves that round down, up, and tie.
std::vector<float> floats_of_every_kind() {
  std::vector<float> all;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U,
                                      0xEFFFU, 0xF000U, 0xFFFFU}) {
      all.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return all;
}

/// Numbers that lie on, between and halfway between those of `type`, of every exponent that it has and some
/// beyond.
std::vector<double> doubles_around(NumberType type) {
  const StorageFormat format = format_of(type);
  std::vector<double> all{0.0,
                          -0.0,
                          kInfinite<double>,
                          -kInfinite<double>,
                          kNone<double>,
                          format.largest,
                          std::numeric_limits<double>::max(),
                          std::numeric_limits<double>::denorm_min()};
  RandomNumbers random(17);
  const int most = std::ilogb(format.largest) + 2;
  for (int exponent = format.least_exponent - format.digits - 2; exponent <= most; ++exponent) {
    const double unit =
        std::ldexp(1.0, std::max(exponent - format.digits + 1, format.least_exponent - format.digits + 1));
    for (int i = 0; i < 12; ++i) {
      const double on = std::floor(std::ldexp(1.5 + random.next(0.5), exponent) / unit) * unit;
      for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        const double each = on + part * unit;
        for (const double near : {each, std::nextafter(each, 0), std::nextafter(each, kInfinite<double>)}) {
          all.push_back(near);
          all.push_back(-near);
        }
      }
    }
  }
  return all;
}

template <class T>
std::string first_unlike_stored(const TileKernels<T>& kernels, const std::vector<T>& from, NumberType type) {
  std::vector<T> to(from.size());
  kernels.round(from.data(), static_cast<std::int64_t>(from.size()), to.data(), type);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const T expected = stored_as(type, from[i]);
    if (!same(to[i], expected)) {
      return fmt::format("{:a} becomes {:a}, not {:a}", from[i], to[i], expected);
    }
  }
  return "";
}

TEST_CASE("the vector code rounds as stored_as does, bit for bit") {
  const std::vector<float> floats = floats_of_every_kind();
  for (const auto* kernels : tile_kernels_of_every_target<float>()) {
    INFO(kernels->target);
    for (const NumberType type : {NumberType::fp16, NumberType::bf16, NumberType::fp32, NumberType::fp64}) {
      INFO(name_of(type));
      CHECK(first_unlike_stored(*kernels, floats, type) == "");
    }
  }
  const std::vector<double> wide(floats.begin(), floats.begin() + 100000);
  for (const auto* kernels : tile_kernels_of_every_target<double>()) {
    INFO(kernels->target);
    for (const NumberType type : {NumberType::fp16, NumberType::bf16, NumberType::fp32, NumberType::fp64}) {
      INFO(name_of(type));
      CHECK(first_unlike_stored(*kernels, wide, type) == "");
      CHECK(first_unlike_stored(*kernels, doubles_around(type), type) == "");
    }
  }
}

TEST_CASE("rounding in place and of every count gives the same, and touches nothing beyond") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    RandomNumbers random(18);
    const AlignedVector<T> from = drawn<T>(random, 80);
    for (std::int64_t n = 0; n <= 70; ++n) {
      AlignedVector<T> to = from;
      kernels.round(to.data(), n, to.data(), NumberType::bf16);
      bool right = true;
      for (std::size_t i = 0; i < to.size(); ++i) {
        right = right && same(to[i], static_cast<std::int64_t>(i) < n ? stored_as(NumberType::bf16, from[i])
                                                                      : from[i]);
      }
      CHECK(right);
    }
  });
}

TEST_CASE("a copy tells whether one number isn't finite, wherever it is") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    RandomNumbers random(19);
    for (std::int64_t n = 0; n <= 40; ++n) {
      AlignedVector<T> numbers = drawn<T>(random, 41);
      // What lies beyond doesn't count and isn't copied; the largest number does, and is finite.
      numbers[static_cast<std::size_t>(n)] = kNone<T>;
      if (n > 0) numbers[0] = std::numeric_limits<T>::lowest();
      AlignedVector<T> to(41, T(7));
      CHECK(kernels.copy(numbers.data(), n, to.data()));
      CHECK(same_bits(to.data(), numbers.data(), static_cast<std::size_t>(n)));
      CHECK(std::all_of(to.begin() + n, to.end(), [](T each) { return each == T(7); }));
      for (std::int64_t i = 0; i < n; ++i) {
        for (const T bad : {kNone<T>, kInfinite<T>, -kInfinite<T>}) {
          AlignedVector<T> with = numbers;
          with[static_cast<std::size_t>(i)] = bad;
          if (kernels.copy(with.data(), n, to.data())) FAIL_CHECK(bad << " at " << i << " of " << n);
          if (!same(to[static_cast<std::size_t>(i)], bad)) FAIL_CHECK(bad << " isn't copied");
        }
      }
    }
  });
}

TEST_CASE("rows become lanes and lanes rows again, and lanes without a row are zero") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    RandomNumbers random(20);
    std::string wrong;
    for (std::int64_t count = 1; count <= kWidth<T>; ++count) {
      for (const std::int64_t columns : {1, 2, 3, 8, 17}) {
        const std::int64_t stride = columns + 2;
        const AlignedVector<T> rows = drawn<T>(random, count * stride);
        AlignedVector<T> panel(static_cast<std::size_t>(columns * kWidth<T>), kNone<T>);
        kernels.pack(rows.data(), stride, count, columns, panel.data());
        AlignedVector<T> back(rows.size(), T(7));
        kernels.unpack(panel.data(), count, columns, back.data(), stride);
        bool right = true;
        for (std::int64_t x = 0; x < columns; ++x) {
          for (std::int64_t q = 0; q < kWidth<T>; ++q) {
            const T lane = panel[static_cast<std::size_t>(x * kWidth<T> + q)];
            right = right && same(lane, q < count ? rows[static_cast<std::size_t>(q * stride + x)] : T(0));
          }
        }
        for (std::int64_t q = 0; q < count; ++q) {
          for (std::int64_t x = 0; x < stride; ++x) {
            const auto at = static_cast<std::size_t>(q * stride + x);
            right = right && same(back[at], x < columns ? rows[at] : T(7));
          }
        }
        if (!right && wrong.empty()) wrong = fmt::format("{} rows of {}", count, columns);
      }
    }
    CHECK(wrong == "");
  });
}

/// What a tile goes through: products, exponentials, sums, rounding.
template <class T>
AlignedVector<T> worked_tile(const TileKernels<T>& kernels) {
  RandomNumbers random(21);
  constexpr std::int64_t kKeys = 24, kDepth = 10;
  AlignedVector<T> k = drawn<T>(random, kKeys * kDepth);
  const AlignedVector<T> q = drawn<T>(random, kDepth * kWidth<T>);
  AlignedVector<T> s(static_cast<std::size_t>(kKeys * kWidth<T>));
  kernels.product({.c = s.data(),
                   .c_stride = kWidth<T>,
                   .a = k.data(),
                   .a_row = kDepth,
                   .a_step = 1,
                   .b = q.data(),
                   .b_stride = kWidth<T>,
                   .rows = kKeys,
                   .columns = kWidth<T>,
                   .depth = kDepth,
                   .mode = Product<T>::Mode::assign,
                   .factor = T(0.3)});
  AlignedVector<T> m(static_cast<std::size_t>(kWidth<T>), -kInfinite<T>), l(m.size());
  kernels.maximum(s.data(), kKeys, m.data());
  kernels.exponentials(s.data(), kKeys, m.data(), l.data(), NumberType::bf16);
  AlignedVector<T> o(q.size());
  kernels.product({.c = o.data(),
                   .c_stride = kWidth<T>,
                   .a = k.data(),
                   .a_row = 1,
                   .a_step = kDepth,
                   .b = s.data(),
                   .b_stride = kWidth<T>,
                   .rows = kDepth,
                   .columns = kWidth<T>,
                   .depth = kKeys});
  kernels.divide(o.data(), kDepth, l.data());
  o.insert(o.end(), l.begin(), l.end());
  return o;
}

TEST_CASE("instruction sets with fused multiply-adds give the same bits") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    const AlignedVector<T> best = worked_tile(tile_kernels<T>());
    const AlignedVector<T> got = worked_tile(kernels);
    if (fuses(kernels) && fuses(tile_kernels<T>())) {
      CHECK(same(got, best));
    } else {
      bool near = true;
      for (std::size_t i = 0; i < got.size(); ++i) near = near && std::fabs(got[i] - best[i]) <= T(0.01);
      CHECK(near);
    }
  });
}

}  // namespace
}  // namespace flashsim
