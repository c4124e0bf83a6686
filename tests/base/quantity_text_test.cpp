#include "core/base/quantity_text.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "tests/catch.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;
constexpr std::int64_t kTiB = 1024 * kGiB;

TEST_CASE("sizes have three significant digits") {
  CHECK(size_text(Bytes(0)) == "0 B");
  CHECK(size_text(Bytes(1)) == "1 B");
  CHECK(size_text(Bytes(1023)) == "1023 B");
  CHECK(size_text(Bytes(kKiB)) == "1.00 KiB");
  CHECK(size_text(Bytes(65 * kMiB)) == "65.0 MiB");
  CHECK(size_text(Bytes(260 * kMiB)) == "260 MiB");
  CHECK(size_text(Bytes(4289 * kMiB)) == "4.19 GiB");
  CHECK(size_text(Bytes(4 * kGiB)) == "4.00 GiB");
  CHECK(size_text(Bytes(64 * kTiB)) == "64.0 TiB");
  CHECK(size_text(Bytes(1024 * kTiB)) == "1.00 PiB");
}

TEST_CASE("halves of the last digit of a size are rounded up") {
  CHECK(size_text(Bytes(16 * kGiB + kGiB / 4)) == "16.3 GiB");      // 16.25
  CHECK(size_text(Bytes(16 * kGiB + kGiB / 4 - 1)) == "16.2 GiB");  // a byte less
  CHECK(size_text(Bytes(16 * kGiB + kGiB * 3 / 4)) == "16.8 GiB");  // 16.75, even digit or not
  CHECK(size_text(Bytes(4 * kGiB + kGiB / 8)) == "4.13 GiB");       // 4.125
  CHECK(size_text(Bytes(2080 * kMiB)) == "2.03 GiB");               // 2.03125
  CHECK(size_text(Bytes(4224 * kMiB)) == "4.13 GiB");               // 4.125
  CHECK(size_text(Bytes(128 * kKiB + kKiB / 2)) == "129 KiB");      // 128.5
  CHECK(size_text(Bytes(128 * kKiB + kKiB / 2 - 1)) == "128 KiB");
}

TEST_CASE("a size that rounds up to the next unit is told in it") {
  CHECK(size_text(Bytes(kMiB - 1)) == "1.00 MiB");
  CHECK(size_text(Bytes(kMiB - kKiB / 2)) == "1.00 MiB");
  CHECK(size_text(Bytes(kMiB - kKiB / 2 - 1)) == "1023 KiB");
  CHECK(size_text(Bytes(kGiB - 1)) == "1.00 GiB");
  CHECK(size_text(Bytes(10 * kKiB - 1)) == "10.0 KiB");
  CHECK(size_text(Bytes(100 * kKiB - 1)) == "100 KiB");
}

TEST_CASE("the largest sizes are told exactly too") {
  CHECK(size_text(Bytes(std::int64_t{1} << 62)) == "4.00 EiB");
  CHECK(size_text(Bytes(std::numeric_limits<std::int64_t>::max() - 1)) == "8.00 EiB");
  // 4.125 EiB and a byte less: a double can't tell the two apart.
  const std::int64_t half = (std::int64_t{1} << 62) + (std::int64_t{1} << 57);
  CHECK(size_text(Bytes(half)) == "4.13 EiB");
  CHECK(size_text(Bytes(half - 1)) == "4.12 EiB");
}

TEST_CASE("a size's text is within half of its last digit") {
  for (std::int64_t bytes = 1024; bytes < (std::int64_t{1} << 58); bytes = bytes * 17 / 13 + 1) {
    const std::string text = size_text(Bytes(bytes));
    const std::size_t space = text.find(' ');
    REQUIRE(space != std::string::npos);
    double unit = 1;
    for (const char prefix : std::string("KMGTPE")) {
      unit *= 1024;
      if (text[space + 1] == prefix) break;
    }
    const std::size_t point = text.find('.');
    const double digit = point == std::string::npos ? 1.0 : space - point == 2 ? 0.1 : 0.01;
    CAPTURE(bytes, text);
    REQUIRE(std::abs(std::strtod(text.c_str(), nullptr) - static_cast<double>(bytes) / unit) <=
            digit * 0.50000001);
    REQUIRE((point == std::string::npos ? space >= 3 : space == 4));
  }
}

TEST_CASE("ratios have three significant digits and no exponent below a million") {
  CHECK(three_digits(0) == "0");
  CHECK(three_digits(3.879) == "3.88");
  CHECK(three_digits(2.8507) == "2.85");
  CHECK(three_digits(32.5) == "32.5");
  CHECK(three_digits(1) == "1.00");
  CHECK(three_digits(128) == "128");
  CHECK(three_digits(0.01234) == "0.0123");
  CHECK(three_digits(0.0001) == "0.000100");
  CHECK(three_digits(123456) == "123456");
  CHECK(three_digits(1234567) == "1.23e+06");
}

TEST_CASE("a ratio that rounds up to one digit more loses one behind the point") {
  CHECK(three_digits(9.996) == "10.0");
  CHECK(three_digits(9.994) == "9.99");
  CHECK(three_digits(99.96) == "100");
  CHECK(three_digits(0.9996) == "1.00");
}

TEST_CASE("long integers are told in groups of three digits") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1 000");
  CHECK(grouped(67108864) == "67 108 864");
  CHECK(grouped(-1234567) == "-1 234 567");
  CHECK(grouped(-123) == "-123");
  CHECK(grouped(std::numeric_limits<std::int64_t>::max()) == "9 223 372 036 854 775 807");
}

TEST_CASE("operations are told with decimal prefixes") {
  CHECK(decimal_text(0) == "0");
  CHECK(decimal_text(999) == "999");
  CHECK(decimal_text(1000) == "1.00 k");
  CHECK(decimal_text(999'999) == "1.00 M");
  CHECK(decimal_text(549'822'922'752) == "550 G");
  CHECK(decimal_text(1'099'511'627'776) == "1.10 T");
  CHECK(decimal_text(1'005) == "1.01 k");
  CHECK(decimal_text(9'223'372'036'854'775'806) == "9.22 E");
}

TEST_CASE("values of tensors are as short as they can be") {
  CHECK(value_text(5) == "5");
  CHECK(value_text(0.5) == "0.5");
  CHECK(value_text(40.0 / 3) == "13.3333");
  CHECK(value_text(-2.5) == "−2.5");
  CHECK(value_text(std::numeric_limits<double>::infinity()) == "∞");
  CHECK(value_text(-std::numeric_limits<double>::infinity()) == "−∞");
  CHECK(value_text(std::numeric_limits<double>::quiet_NaN()) == "NaN");
  CHECK(value_text(-std::numeric_limits<double>::quiet_NaN()) == "NaN");
}

TEST_CASE("exact text reads back as the same double") {
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, -2.0, 9007199254740993.0}) {
    CHECK(std::strtod(exact_text(value).c_str(), nullptr) == value);
  }
  CHECK(exact_text(0.1) == "0.1");
  CHECK(exact_text(std::numeric_limits<double>::infinity()) == "Infinity");
  CHECK(exact_text(-std::numeric_limits<double>::infinity()) == "-Infinity");
  CHECK(exact_text(std::numeric_limits<double>::quiet_NaN()) == "NaN");
}

TEST_CASE("times have three significant digits in the unit that fits") {
  CHECK(seconds_text({0}) == "0 ns");
  CHECK(seconds_text({1.5e-9}) == "1.50 ns");
  CHECK(seconds_text({1.234e-6}) == "1.23 µs");
  CHECK(seconds_text({0.0456}) == "45.6 ms");
  CHECK(seconds_text({0.9994}) == "999 ms");
  CHECK(seconds_text({0.9996}) == "1.00 s");
  CHECK(seconds_text({789}) == "789 s");
}

TEST_CASE("FLOPs have a decimal prefix") {
  CHECK(flops_text(Flops(std::int64_t{48})) == "48 FLOP");
  CHECK(flops_text(Flops(std::int64_t{549'823'971'328})) == "550 GFLOP");
}

}  // namespace
}  // namespace flashsim
