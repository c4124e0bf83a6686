// What a swept parameter runs through: values, lists, steps and factors.
#include "core/study/sweep_values.hpp"

#include <algorithm>

#include "core/study/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;
using Numbers = std::vector<std::int64_t>;

Numbers numbers(const std::string& text, RangeOf of = RangeOf::dimensions) {
  const auto parsed = parse_sweep_numbers("--seq", text, of);
  INFO(text);
  REQUIRE(message_of(parsed) == test::kNoError);
  return *parsed;
}

std::string wrong(const std::string& text) {
  return message_of(parse_sweep_numbers("--seq", text, RangeOf::dimensions));
}

TEST_CASE("a value, a list, steps and factors stand for their numbers") {
  CHECK(numbers("8192") == Numbers{8192});
  CHECK(numbers("3,1,2") == Numbers{3, 1, 2});
  CHECK(numbers("10:25:+5") == Numbers{10, 15, 20, 25});
  CHECK(numbers("10:24:5") == Numbers{10, 15, 20});
  CHECK(numbers("512:5000:x2") == Numbers{512, 1024, 2048, 4096});
  CHECK(numbers("7:7:x2") == Numbers{7});
  CHECK(numbers("1,100:300:100,8:32:x2") == Numbers{1, 100, 200, 300, 8, 16, 32});
}

TEST_CASE("sizes take units wherever a number stands") {
  CHECK(numbers("16KiB:64KiB:x2", RangeOf::bytes) == Numbers{16384, 32768, 65536});
  CHECK(numbers("1KiB:3KiB:+1KiB,100", RangeOf::bytes) == Numbers{1024, 2048, 3072, 100});
}

TEST_CASE("a fractional factor rounds down, skips repeats, and means the decimal that was written") {
  CHECK(numbers("1:10:x1.5") == Numbers{1, 2, 3, 5, 7});
  CHECK(numbers("10:18:x1.2") == Numbers{10, 12, 14, 17});
  CHECK(numbers("100:150:x1.1") == Numbers{100, 110, 121, 133, 146});
  // 1.25^12 = 14.55; 3.0 times ten to any power stays whole.
  CHECK(numbers("3:30000000000:x10").back() == 30'000'000'000);
}

TEST_CASE("factor ranges rise, begin at their first number and stay below their last") {
  for (const char* factor : {"1.001", "1.1", "1.5", "2", "3.7", "1000"}) {
    for (const std::int64_t first : {1, 2, 17, 4096}) {
      const auto found = numbers(std::to_string(first) + ":1000000:x" + factor);
      CHECK(found.front() == first);
      CHECK(found.back() <= 1'000'000);
      CHECK(std::is_sorted(found.begin(), found.end(), std::less_equal<>()));
    }
  }
}

TEST_CASE("a number that stands twice counts once") {
  CHECK(numbers("4,4,2:8:x2") == Numbers{4, 2, 8});
  const auto& algorithms = sweep_parameters()[0];
  CHECK(parse_sweep_values(algorithms, "flash,flash2,flash1")->size() == 2);
}

TEST_CASE("ranges that can't be are refused with what was written") {
  CHECK(wrong("8:4:x2") == "--seq runs backwards: '8:4:x2'");
  CHECK(wrong("1:2") == "--seq has no range of that form: '1:2'");
  CHECK(wrong("1:2:3:4") == "--seq has no range of that form: '1:2:3:4'");
  CHECK(wrong("1:8:x1") == "the factor of --seq must be at least 1.001, not '1'");
  CHECK(wrong("1:8:x-2") == "the factor of --seq must be at least 1.001, not '-2'");
  CHECK(wrong("1:8:xinf") == "the factor of --seq must be a finite number, not 'inf'");
  CHECK(wrong("1:8:x") == "the factor of --seq must be a finite number, not ''");
  CHECK(wrong("1:8:+0") == "the step of --seq must be a whole number from 1 to 1099511627776, not '0'");
  CHECK(wrong("0:8:x2") == "--seq must be a whole number from 1 to 1099511627776, not '0'");
  CHECK(wrong("1,,2") == "--seq must be a whole number from 1 to 1099511627776, not ''");
  CHECK(wrong("1:1000000:1") == "--seq runs through more than 100 000 values: '1:1000000:1'");
  CHECK(wrong("1:80000:1,100001:180000:1") ==
        "--seq runs through more than 100 000 values: '1:80000:1,100001:180000:1'");
}

TEST_CASE("the largest numbers end a range like any others") {
  CHECK(numbers("1099511627775:1099511627776:+1").size() == 2);
  CHECK(numbers("1099511627776:1099511627776:x1e300") == Numbers{std::int64_t{1} << 40});
  CHECK(numbers("1:9223372036854775806:x1000000", RangeOf::bytes).size() == 4);
}

}  // namespace
}  // namespace flashsim
