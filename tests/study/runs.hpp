// Runs that must succeed.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/study/report_json.hpp"
#include "core/study/run.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/pattern_for.hpp"

namespace flashsim::test {

inline RunPlan planned(const RunRequest& request) {
  auto plan = plan_run(request);
  INFO(hint_of(plan));
  REQUIRE(message_of(plan) == kNoError);
  return std::move(plan).value();
}

inline RunReport ran(const RunRequest& request) {
  auto report = make_run(planned(request));
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

/// The run that the JSON of `report` asks for.
inline RunReport repeated(const RunReport& report) {
  const auto request = read_run_request(run_json(report).dump(), "r.json");
  REQUIRE(message_of(request) == kNoError);
  return ran(*request);
}

/// O, L and the gradients, one number behind the other.
inline std::vector<double> numbers_of(const RunReport& report) {
  std::vector<double> numbers;
  std::visit(
      [&](const auto& results) {
        const auto add = [&](const auto& tensor) {
          numbers.insert(numbers.end(), tensor.data().begin(), tensor.data().end());
        };
        add(results.outputs.o);
        add(results.outputs.lse);
        if (!results.gradients) return;
        add(results.gradients->dq);
        add(results.gradients->dk);
        add(results.gradients->dv);
      },
      report.results);
  return numbers;
}

inline Scenario scenario_of(const std::string& text) {
  auto scenario = read_scenario(text, "s.json");
  REQUIRE(message_of(scenario) == kNoError);
  return std::move(scenario).value();
}

/// A small problem of one algorithm.
inline RunRequest small_run(Algorithm algorithm = Algorithm::flash2) {
  return {.account = {.algorithm = algorithm,
                      .batch = 2,
                      .heads = 4,
                      .kv_heads = 2,
                      .seq = 37,
                      .kv_seq = 50,
                      .head_dim = 6,
                      .tiles = {8, 16},
                      .pattern = pattern_for(algorithm)}};
}

}  // namespace flashsim::test
