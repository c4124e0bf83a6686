// Rounding to a storage type, against the type's numbers counted out one by one.
#include "core/base/rounding.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double as(NumberType type, double value) { return stored_as(type, value); }
float as(NumberType type, float value) { return stored_as(type, value); }

/// Every number ≥ 0 of a 16-bit format, from its bits: `digits` of the significand are stored.
std::vector<double> numbers_of(int digits, int bias, int exponents) {
  std::vector<double> all;
  for (int exponent = 0; exponent < exponents; ++exponent) {
    for (int significand = 0; significand < 1 << digits; ++significand) {
      const int hidden = exponent == 0 ? 0 : 1 << digits;
      all.push_back(std::ldexp(hidden + significand, std::max(exponent, 1) - bias - digits));
    }
  }
  return all;
}
std::vector<double> every_fp16() { return numbers_of(10, 15, 31); }
std::vector<double> every_bf16() { return numbers_of(7, 127, 255); }

struct Format {
  NumberType type;
  std::vector<double> numbers;  ///< rising
};
std::array<Format, 2> formats() {
  return {Format{NumberType::fp16, every_fp16()}, Format{NumberType::bf16, every_bf16()}};
}

TEST_CASE("a format's facts are those of its numbers") {
  for (const Format& format : formats()) {
    CHECK(format.numbers[0] == 0);
    CHECK(format.numbers[1] == format_of(format.type).smallest());
    CHECK(format.numbers.back() == format_of(format.type).largest);
    CHECK(std::is_sorted(format.numbers.begin(), format.numbers.end()));
    const auto one = std::find(format.numbers.begin(), format.numbers.end(), 1.0);
    REQUIRE(one != format.numbers.end());
    CHECK(*(one + 1) - 1 == 2 * format_of(format.type).unit());
  }
  CHECK(formats()[0].numbers.size() == 31 * 1024);
  CHECK(formats()[1].numbers.size() == 255 * 128);
}

TEST_CASE("every number of a type is stored as itself") {
  for (const Format& format : formats()) {
    for (const double each : format.numbers) {
      for (const double value : {each, -each}) {
        REQUIRE(as(format.type, value) == value);
        REQUIRE(std::signbit(as(format.type, value)) == std::signbit(value));
        REQUIRE(as(format.type, static_cast<float>(value)) == static_cast<float>(value));
      }
    }
  }
}

TEST_CASE("between two numbers the nearer one is stored, and from halfway the even one") {
  for (const Format& format : formats()) {
    for (std::size_t i = 0; i + 1 < format.numbers.size(); ++i) {
      const double low = format.numbers[i];
      const double high = format.numbers[i + 1];
      const double halfway = low + (high - low) / 2;
      const double even = i % 2 == 0 ? low : high;  // the last bit of number i is that of i
      REQUIRE(as(format.type, halfway) == even);
      REQUIRE(as(format.type, -halfway) == -even);
      REQUIRE(as(format.type, std::nextafter(halfway, 0)) == low);
      REQUIRE(as(format.type, std::nextafter(halfway, kInfinity)) == high);
      // In float halfway is exact too, but for the least bfloat16 numbers.
      if (static_cast<double>(static_cast<float>(halfway)) == halfway) {
        REQUIRE(double{as(format.type, static_cast<float>(halfway))} == even);
      }
    }
  }
}

TEST_CASE("a larger number is never stored as a smaller one") {
  for (const NumberType type : {NumberType::fp16, NumberType::bf16, NumberType::fp32}) {
    for (const double sign : {1.0, -1.0}) {
      double before = sign > 0 ? 0.0 : -0.0;
      for (double value = 1e-46; value < 1e40; value *= 1.0007) {
        const double now = as(type, sign * value);
        if (!(sign * now >= sign * before)) FAIL_CHECK(sign * value << " as " << name_of(type));
        before = now;
      }
    }
  }
}

TEST_CASE("what rounds beyond the largest number is infinite, and what rounds to it isn't") {
  CHECK(as(NumberType::fp16, 65504.0) == 65504);
  CHECK(as(NumberType::fp16, 65519.99) == 65504);
  CHECK(as(NumberType::fp16, 65519.99F) == 65504);
  CHECK(as(NumberType::fp16, 65520.0) == kInfinity);
  CHECK(as(NumberType::fp16, 65520.0F) == std::numeric_limits<float>::infinity());
  CHECK(as(NumberType::fp16, -65520.0) == -kInfinity);
  CHECK(as(NumberType::fp16, -65519.99) == -65504);
  const double bf16_limit = 0x1.FFp127;  // halfway between the largest bfloat16 and 2¹²⁸
  CHECK(as(NumberType::bf16, std::nextafter(bf16_limit, 0)) == 0x1.FEp127);
  CHECK(as(NumberType::bf16, bf16_limit) == kInfinity);
  CHECK(as(NumberType::bf16, std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  CHECK(as(NumberType::fp16, 1e300) == kInfinity);
  CHECK(as(NumberType::bf16, -1e300) == -kInfinity);
}

TEST_CASE("what is less than half the least number is zero, and keeps its sign") {
  for (const Format& format : formats()) {
    const double least = format.numbers[1];
    CHECK(as(format.type, least / 2) == 0);
    CHECK_FALSE(std::signbit(as(format.type, least / 2)));
    CHECK(std::signbit(as(format.type, -least / 2)));
    CHECK(as(format.type, std::nextafter(least / 2, 1)) == least);
    CHECK(as(format.type, 0.75 * least) == least);
    CHECK(as(format.type, 1.5 * least) == 2 * least);
    CHECK(as(format.type, std::numeric_limits<double>::denorm_min()) == 0);
  }
}

TEST_CASE("a double is stored as float32 as a cast stores it") {
  for (double value = 1e-47; value < 1e40; value *= 1.0003) {
    REQUIRE(as(NumberType::fp32, value) == static_cast<double>(static_cast<float>(value)));
    REQUIRE(as(NumberType::fp32, -value) == static_cast<double>(static_cast<float>(-value)));
  }
}

TEST_CASE("NaN, infinities and zeros stay what they are, and a wide type changes nothing") {
  for (const NumberType type : kNumberTypes) {
    CHECK(std::isnan(as(type, kNaN)));
    CHECK(as(type, kInfinity) == kInfinity);
    CHECK(as(type, -kInfinity) == -kInfinity);
    CHECK(std::signbit(as(type, -0.0)));
    CHECK_FALSE(std::signbit(as(type, 0.0)));
  }
  for (const double value : {0.1, 1e-310, 1e300}) {
    CHECK(as(NumberType::fp64, value) == value);
    CHECK(as(NumberType::fp32, static_cast<float>(value)) == static_cast<float>(value));
    CHECK(as(NumberType::fp64, static_cast<float>(value)) == static_cast<float>(value));
  }
  CHECK_FALSE(is_narrower<float>(NumberType::fp32));
  CHECK_FALSE(is_narrower<double>(NumberType::fp64));
  CHECK(is_narrower<double>(NumberType::fp32));
  CHECK(is_narrower<float>(NumberType::bf16));
}

}  // namespace
}  // namespace flashsim
