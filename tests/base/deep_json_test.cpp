// JSON that is nested without end is an error like any other, not a crash.
#include <string>

#include "core/base/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

TEST_CASE("a list nested a million deep where a number should be is refused, cut short") {
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto parsed = parse_json("{\"seq\": " + nested + "}", "a.json");
  if (!parsed) {
    CHECK_FALSE(test::message_of(parsed).empty());
    return;
  }
  JsonReader reader(*parsed, "a.json: ");
  reader.integer("seq");
  CHECK(test::message_of(reader.finish()).starts_with("a.json: seq must be a whole number, not [[[["));
}

}  // namespace
}  // namespace flashsim
