// The replays as a lesson needs them, read off the terminal's text and off JSON.
#include <cmath>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::run_flashsim;
using nlohmann::json;

json result_of(const std::string& arguments) {
  const auto ran = run_flashsim("replay " + arguments + " --format json");
  INFO(arguments << "\n" << ran.err);
  REQUIRE(ran.status == 0);
  return json::parse(ran.out)["result"];
}

double number(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return value == "Infinity" ? std::numeric_limits<double>::infinity()
                             : -std::numeric_limits<double>::infinity();
}

}  // namespace

TEST_CASE("the three-token walkthrough reads as a teacher tells it") {
  const std::string text = run_flashsim("replay three-token").out;
  for (const char* line :
       {"row   scores      masked        probabilities                    Y",
        "  0   [0, 0, 0]   [0, −∞, −∞]   [1, 0, 0]                        [10, 0]",
        "  1   [0, 0, 0]   [0, 0, −∞]    [0.5, 0.5, 0]                    [5, 10]",
        "  2   [0, 0, 0]   [0, 0, 0]     [0.333333, 0.333333, 0.333333]   [13.3333, 16.6667]",
        "Query tile 2 · row 2", "  key tile 1 · key 2", "    6 accumulate    o ← o + p·V = [40, 50]"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("any tile width gives the same result, at any magnitude") {
  for (const char* magnitude : {"1", "6", "13.5", "30", "40"}) {
    for (const char* width : {"1", "2", "3", "4", "8"}) {
      for (const char* compute : {"f32", "f64"}) {
        INFO(magnitude << " " << width << " " << compute);
        CHECK(result_of(std::string("break-it --magnitude ") + magnitude + " --tile-k " + width +
                        " --compute " + compute)["verdict"] == "right");
      }
    }
  }
}

TEST_CASE("without rescaling the result is wrong where maxima rise and right in one tile") {
  for (const char* width : {"1", "2", "3", "4"}) {
    INFO(width);
    CHECK(result_of(std::string("break-it --no-rescale --tile-k ") + width)["verdict"] ==
          "broken on purpose");
  }
  CHECK(result_of("break-it --no-rescale --tile-k 8")["verdict"] == "right");
}

TEST_CASE(
    "without the maximum nothing changes at magnitude 6; at 30 it is NaN in float32 and finite in float64") {
  CHECK(result_of("break-it --no-subtract-max --magnitude 6")["verdict"] == "right");
  const json single = result_of("break-it --no-subtract-max --magnitude 30");
  CHECK(std::isnan(number(single["output"][0][0][0][0])));
  CHECK(std::isnan(number(single["standard"]["output"][0][0][0][0])));
  CHECK(std::fabs(number(single["truth"]["output"][0][0][0][0]) - 6) < 1e-5);
  const json twice = result_of("break-it --no-subtract-max --magnitude 30 --compute f64");
  CHECK(std::isfinite(number(twice["output"][0][0][0][0])));
}

TEST_CASE("a wrong result is told as wrong at any magnitude, and what can't be told as undecided") {
  CHECK(result_of("break-it --no-rescale --tile-k 2 --magnitude 1e6")["verdict"] == "broken on purpose");
  CHECK(result_of("break-it --tile-k 2 --magnitude 1e6")["verdict"] == "right");
}
