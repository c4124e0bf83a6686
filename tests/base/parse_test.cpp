#include "core/base/parse.hpp"

#include <cstdint>
#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;

TEST_CASE("a dimension is a whole number from 1 to 2^40") {
  CHECK(parse_dimension("--seq", "1").value() == 1);
  CHECK(parse_dimension("--seq", "8192").value() == 8192);
  CHECK(parse_dimension("--seq", "0008").value() == 8);
  CHECK(parse_dimension("--seq", "1099511627776").value() == std::int64_t{1} << 40);
}

TEST_CASE("what is no dimension is refused with its text") {
  for (const std::string text :
       {"0", "-5", "abc", "9223372036854775808", "9223372036854775807", "1099511627777", "1.5", "", "8 ",
        " 8", "1e3", "+8", "0x10", "8k", "-0", "１"}) {
    CAPTURE(text);
    CHECK(message_of(parse_dimension("--seq", text)) ==
          "--seq must be a whole number from 1 to 1099511627776, not '" + text + "'");
    CHECK(hint_of(parse_dimension("--seq", text)).empty());
  }
}

TEST_CASE("a dimension that was read as a number is checked alike") {
  CHECK(check_dimension("seq", 8).value() == 8);
  CHECK(check_dimension("seq", kLargestDimension).value() == kLargestDimension);
  CHECK(message_of(check_dimension("seq", 0)) == "seq must be a whole number from 1 to 1099511627776, not 0");
  CHECK(message_of(check_dimension("seq", -5)) ==
        "seq must be a whole number from 1 to 1099511627776, not -5");
  CHECK(message_of(check_dimension("seq", kLargestDimension + 1)) ==
        "seq must be a whole number from 1 to 1099511627776, not 1099511627777");
}

TEST_CASE("a whole number has the bounds that it is given") {
  CHECK(parse_whole("--step", "0", 0, 10).value() == 0);
  CHECK(parse_whole("--step", "-3", -3, 10).value() == -3);
  CHECK(message_of(parse_whole("--step", "11", 0, 10)) ==
        "--step must be a whole number from 0 to 10, not '11'");
  CHECK(message_of(parse_whole("--step", "-1", 0, 10)) ==
        "--step must be a whole number from 0 to 10, not '-1'");
  CHECK(message_of(parse_whole("--step", "ten", 0, 10)) ==
        "--step must be a whole number from 0 to 10, not 'ten'");
}

TEST_CASE("a finite number is any number but NaN and the infinities") {
  CHECK(parse_finite("--scale", "0.125").value() == 0.125);
  CHECK(parse_finite("--scale", "-1e-3").value() == -0.001);
  for (const std::string text : {"nan", "inf", "-inf", "1e400", "", "1,5", "0.1x"}) {
    CAPTURE(text);
    CHECK(message_of(parse_finite("--scale", text)) == "--scale must be a finite number, not '" + text + "'");
  }
}

TEST_CASE("a size is bytes, or a number of KiB, MiB or GiB") {
  CHECK(parse_size("--sram", "1").value() == Bytes(1));
  CHECK(parse_size("--sram", "65536").value() == Bytes(65536));
  CHECK(parse_size("--sram", "512B").value() == Bytes(512));
  CHECK(parse_size("--sram", "192KiB").value() == Bytes(196608));
  CHECK(parse_size("--sram", "192 KiB").value() == Bytes(196608));
  CHECK(parse_size("--sram", "1.5MiB").value() == Bytes(1572864));
  CHECK(parse_size("--sram", "2GiB").value() == Bytes(2147483648));
  CHECK(parse_size("--sram", "0.5KiB").value() == Bytes(512));
}

TEST_CASE("what is no size of at least one byte is refused with its text") {
  for (const std::string text :
       {"0", "-5", "abc", "", "1.5", "0KiB", "192KB", "192kib", "KiB", "1e300GiB", "9223372036854775808",
        "0.1KiB", "0.0001KiB", "nan", "inf", "1 2", "-1KiB", " 8"}) {
    CAPTURE(text);
    CHECK(message_of(parse_size("--sram", text)) ==
          "--sram must be a size such as 192KiB, not '" + text + "'");
    CHECK(hint_of(parse_size("--sram", text)) ==
          "write bytes as a plain number, or with KiB, MiB or GiB: 65536, 192KiB, 1.5MiB");
  }
}

TEST_CASE("a size in plain bytes is exact, beyond 2^53 too") {
  CHECK(parse_size("--sram", "9007199254740993").value() == Bytes(9007199254740993));
}

}  // namespace
}  // namespace flashsim
