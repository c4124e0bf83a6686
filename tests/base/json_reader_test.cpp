#include "core/base/json_reader.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using test::hint_of;
using test::kNoError;
using test::message_of;

/// The message of the one read that `read` does on `text`.
template <class Read>
std::string message_after(const std::string& text, Read read) {
  const json object = json::parse(text);
  JsonReader reader(object, "a.json: problem");
  read(reader);
  return message_of(reader.finish());
}

TEST_CASE("JSON that is cut off says so, with line and column") {
  CHECK(message_of(parse_json("{\"seq\": 8", "a.json")) ==
        "a.json isn't valid JSON: it ends too early, at line 1, column 10");
  CHECK(message_of(parse_json("{\n  \"seq\": [1,\n", "a.json")) ==
        "a.json isn't valid JSON: it ends too early, at line 3, column 1");
  CHECK(message_of(parse_json("", "a.json")) ==
        "a.json isn't valid JSON: it ends too early, at line 1, column 1");
}

TEST_CASE("JSON that is wrong says where") {
  CHECK(message_of(parse_json("{\"seq\": x}", "a.json")) ==
        "a.json isn't valid JSON: it goes wrong at line 1, column 9");
  CHECK(message_of(parse_json("{\n  \"seq\": 8,,\n}", "a.json")) ==
        "a.json isn't valid JSON: it goes wrong at line 2, column 12");
  CHECK(message_of(parse_json("{} {}", "a.json")) ==
        "a.json isn't valid JSON: it goes wrong at line 1, column 4");
  CHECK(message_of(parse_json("NaN", "a.json")) ==
        "a.json isn't valid JSON: it goes wrong at line 1, column 1");
}

TEST_CASE("a JSON number beyond every double is an error, not an infinity") {
  CHECK(message_of(parse_json("{\"scale\": 1e400}", "a.json")) ==
        "a.json isn't valid JSON: a number is out of range");
}

TEST_CASE("a key that nobody asked for is refused with its path and the nearest key") {
  const json object = json::parse(R"({"seq": 8, "haeds": 2})");
  JsonReader reader(object, "a.json: problem");
  CHECK(reader.integer("seq") == 8);
  CHECK_FALSE(reader.integer("heads"));
  const auto error = reader.finish();
  CHECK(message_of(error) == "a.json: unknown key problem.haeds");
  CHECK(hint_of(error) == "did you mean 'heads'? known: heads, seq");
}

TEST_CASE("a wrong type is refused with its path and value") {
  const auto integer = [](JsonReader& r) { r.integer("k"); };
  CHECK(message_after(R"({"k": "8"})", integer) == "a.json: problem.k must be a whole number, not \"8\"");
  CHECK(message_after(R"({"k": 8.0})", integer) == "a.json: problem.k must be a whole number, not 8.0");
  CHECK(message_after(R"({"k": true})", integer) == "a.json: problem.k must be a whole number, not true");
  CHECK(message_after(R"({"k": [1, 2]})", integer) == "a.json: problem.k must be a whole number, not [1,2]");
  CHECK(message_after(R"({"k": "8"})", [](JsonReader& r) { r.number("k"); }) ==
        "a.json: problem.k must be a finite number, not \"8\"");
  CHECK(message_after(R"({"k": 8})", [](JsonReader& r) { r.text("k"); }) ==
        "a.json: problem.k must be a text of one line, not 8");
  CHECK(message_after(R"({"k": 1})", [](JsonReader& r) { r.flag("k"); }) ==
        "a.json: problem.k must be true or false, not 1");
  CHECK(message_after(R"({"k": []})", [](JsonReader& r) { r.object("k"); }) ==
        "a.json: problem.k must be an object, not []");
}

TEST_CASE("a dimension is bounded, with its path") {
  const auto dimension = [](JsonReader& r) { r.dimension("seq"); };
  CHECK(message_after(R"({"seq": 8})", dimension) == kNoError);
  CHECK(message_after(R"({"seq": 0})", dimension) ==
        "a.json: problem.seq must be a whole number from 1 to 1099511627776, not 0");
  CHECK(message_after(R"({"seq": -9223372036854775808})", dimension) ==
        "a.json: problem.seq must be a whole number from 1 to 1099511627776, not -9223372036854775808");
}

TEST_CASE("integers up to 64 bits are exact and those beyond are refused") {
  const json object = json::parse(R"({"largest": 9223372036854775807, "least": -9223372036854775808})");
  JsonReader reader(object, "a.json");
  CHECK(reader.integer("largest") == std::numeric_limits<std::int64_t>::max());
  CHECK(reader.integer("least") == std::numeric_limits<std::int64_t>::min());
  const auto integer = [](JsonReader& r) { r.integer("k"); };
  CHECK(message_after(R"({"k": 9223372036854775808})", integer) ==
        "a.json: problem.k must be a whole number, not 9223372036854775808");
  CHECK(message_after(R"({"k": 18446744073709551615})", integer) ==
        "a.json: problem.k must be a whole number, not 18446744073709551615");
  CHECK(message_after(R"({"k": 18446744073709551616})", integer) ==
        "a.json: problem.k must be a whole number, not 1.8446744073709552e+19");
}

TEST_CASE("null counts as absent, for every type") {
  const json object = json::parse(R"({"k": null})");
  JsonReader reader(object, "a.json");
  CHECK_FALSE(reader.has("k"));
  CHECK_FALSE(reader.integer("k"));
  CHECK_FALSE(reader.dimension("k"));
  CHECK_FALSE(reader.number("k"));
  CHECK_FALSE(reader.text("k"));
  CHECK_FALSE(reader.flag("k"));
  CHECK(reader.value("k") == nullptr);
  CHECK(reader.object("k") == nullptr);
  CHECK(message_of(reader.finish()) == kNoError);
}

TEST_CASE("every type reads back as it was written") {
  const json object = json::parse(R"({"i": -3, "n": 0.5, "whole": 2, "t": "x", "f": false, "o": {"k": 1}})");
  JsonReader reader(object, "a.json");
  CHECK(reader.integer("i") == -3);
  CHECK(reader.number("n") == 0.5);
  CHECK(reader.number("whole") == 2.0);
  CHECK(reader.text("t") == "x");
  CHECK(reader.flag("f") == false);
  REQUIRE(reader.object("o") != nullptr);
  CHECK(message_of(reader.finish()) == kNoError);
}

TEST_CASE("the first error is kept and later reads give nothing") {
  const json object = json::parse(R"({"a": "x", "b": "y", "c": 3})");
  JsonReader reader(object, "a.json: ");
  reader.integer("a");
  reader.integer("b");
  CHECK_FALSE(reader.integer("c"));
  CHECK(message_of(reader.finish()) == "a.json: a must be a whole number, not \"x\"");
}

TEST_CASE("what should be an object and isn't is refused") {
  const json list = json::parse("[1, 2]");
  JsonReader reader(list, "a.json: problem");
  CHECK_FALSE(reader.has("seq"));
  CHECK_FALSE(reader.integer("seq"));
  CHECK(message_of(reader.finish()) == "a.json: problem must be an object, not [1,2]");
}

TEST_CASE("a whole file that should be an object and isn't is refused by the file's name") {
  const json list = json::parse("[1, 2]");
  JsonReader reader(list, "a.json: ");
  CHECK(message_of(reader.finish()) == "a.json must be an object, not [1,2]");
}

TEST_CASE("a long value is cut short in an error") {
  CHECK(short_json(json(std::string(100, 'x'))) == "\"" + std::string(36, 'x') + "...");
  CHECK(short_json(json("é")) == "\"\\u00e9\"");
}

TEST_CASE("the numbers that JSON lacks are texts, both ways") {
  CHECK(json_number(number_json(std::numeric_limits<double>::infinity())) ==
        std::numeric_limits<double>::infinity());
  CHECK(json_number(number_json(-std::numeric_limits<double>::infinity())) ==
        -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(json_number(number_json(std::numeric_limits<double>::quiet_NaN())).value()));
  CHECK(json_number(number_json(0.1)) == 0.1);
  CHECK(number_json(std::numeric_limits<double>::infinity()).dump() == "\"Infinity\"");
  CHECK(number_json(-std::numeric_limits<double>::infinity()).dump() == "\"-Infinity\"");
  CHECK(number_json(std::numeric_limits<double>::quiet_NaN()).dump() == "\"NaN\"");
  CHECK_FALSE(json_number(json("inf")));
  CHECK_FALSE(json_number(json("1")));
  CHECK_FALSE(json_number(json(true)));
}

}  // namespace
}  // namespace flashsim
