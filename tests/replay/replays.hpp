// Replays that must succeed, and replays of scenarios that exist as text alone.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/study/replay.hpp"
#include "core/study/report_json.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim::test {

inline ReplayReport succeeded(Result<ReplayReport> report) {
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

inline ReplayReport replayed(const ReplayRequest& request) { return succeeded(make_replay(request)); }

/// The scenario, which is text, under the name "big.json".
inline Result<ReplayReport> replay_text(const std::string& text, const ReplayRequest& over = {}) {
  auto scenario = read_scenario(text, "big.json");
  REQUIRE(message_of(scenario) == kNoError);
  const nlohmann::ordered_json input{{"scenario", scenario_json(*scenario)}};
  auto report = repeat_replay(input.dump(), "big.json", over);
  if (report) return report;
  // A repeated run is called by where it was read from; the scenario alone is what these tests name.
  Error error = report.error();
  const std::string called = "big.json: scenario";
  if (error.message.starts_with(called)) error.message.replace(0, called.size(), "big.json");
  return error;
}
inline ReplayReport replayed_text(const std::string& text, const ReplayRequest& over = {}) {
  return succeeded(replay_text(text, over));
}

inline ReplayReport replayed(const Scenario& scenario, Algorithm algorithm,
                             std::optional<std::int64_t> row = {}) {
  return replayed_text(scenario_json(scenario).dump(), {.algorithm = algorithm, .row = row});
}

/// The recorded values are the same, number by number.
inline bool same_frames(const Recording& a, const Recording& b) {
  if (a.frames.size() != b.frames.size()) return false;
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  for (std::size_t i = 0; i < a.frames.size(); ++i) {
    const auto& left = a.frames[i].values;
    const auto& right = b.frames[i].values;
    if (left.size() != right.size()) return false;
    for (std::size_t n = 0; n < left.size(); ++n) {
      const auto& x = left[n].second.numbers;
      const auto& y = right[n].second.numbers;
      if (x.size() != y.size() || !std::equal(x.begin(), x.end(), y.begin(), same)) return false;
    }
  }
  return true;
}

}  // namespace flashsim::test
