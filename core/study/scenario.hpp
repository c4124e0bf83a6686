// A scenario: a problem with its tensors, tiles and switches, and the questions that a teacher asks of
// it. Read from JSON ("flashsim.scenario/1"); docs/scenarios.md describes the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/attention/attend.hpp"
#include "core/base/result.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"
#include "core/problem/tiling.hpp"
#include "core/study/random_tensors.hpp"

namespace flashsim {

struct Scenario {
  std::string source;  ///< what errors call it
  std::string title;
  Problem problem;
  Inputs<double> inputs;  ///< as given; empty where `random` is set
  std::optional<RandomTensors> random;
  Tiling tiling;
  Switches switches;
  std::vector<std::string> questions;

  /// The tensors, drawn where they are random.
  [[nodiscard]] Inputs<double> tensors() const;
  /// Multiplies every score by `factor`: given scores directly, Q otherwise; random tensors are drawn
  /// with that magnitude.
  void set_magnitude(double factor);
};

/// Reads a scenario. Errors name the key with its path: unknown keys, wrong types and shapes, sizes
/// that disagree with the tensors.
Result<Scenario> read_scenario(std::string_view text, const std::string& source);
Result<Scenario> scenario_from_json(const nlohmann::json& object, const std::string& source);

/// A built-in scenario by name, or a file.
Result<Scenario> find_scenario(const std::string& name_or_path);

/// The scenario as JSON that read_scenario reads back.
nlohmann::ordered_json scenario_json(const Scenario& scenario);

}  // namespace flashsim
