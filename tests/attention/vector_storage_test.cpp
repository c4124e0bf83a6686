// Rounding, copying and turning of tiles in vector code, against plain scalar code, for every instruction
// set.
#include "core/attention/vector/tile_kernels.hpp"

#include <bit>
#include <string>
#include <vector>

#include "core/base/rounding.hpp"
#include "tests/attention/vector_targets.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn;
using test::element_of;
using test::for_every_target;
using test::kInfinite;
using test::kNone;
using test::kWidth;
using test::RandomNumbers;
using test::same;
using test::same_bits;

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

}  // namespace
}  // namespace flashsim
