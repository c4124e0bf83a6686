// A replay: a scenario executed the standard way and the tiled way, every step recorded, both held
// against the truth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/comparison.hpp"
#include "core/attention/tensors.hpp"
#include "core/attention/tolerance.hpp"
#include "core/attention/truth.hpp"
#include "core/attention/verdict.hpp"
#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/replay/recorder.hpp"
#include "core/study/scenario.hpp"

namespace flashsim {

/// What a user changes in a scenario; what is absent stays as the scenario has it.
struct ReplayRequest {
  std::string scenario;                ///< a built-in name or a path
  std::optional<Algorithm> algorithm;  ///< a tiled one; flash2 where absent
  std::optional<NumberType> compute;   ///< fp32 or fp64
  std::optional<std::int64_t> row;     ///< this row alone is recorded
  TilingRequest tiles;
  std::optional<double> magnitude;
  bool no_subtract_max = false;
  bool no_rescale = false;
};

/// One execution: its frames, its result, and how far that is from the truth.
struct Recording {
  Algorithm algorithm{};
  std::vector<Frame> frames;
  Outputs<double> outputs;
  Comparison output_error;
  Comparison lse_error;
  [[nodiscard]] bool agrees() const { return output_error.agrees() && lse_error.agrees(); }
};

struct ReplayReport {
  Scenario scenario;  ///< with the changes of the request
  NumberType compute{};
  std::optional<std::int64_t> row;
  Recording standard;  ///< the one-shot way
  Recording tiled;     ///< the algorithm that was asked for
  Truth truth;
  Tolerance tolerance;  ///< of the tiled algorithm, and it covers the standard one
  Verdict verdict{};
};

/// Plays what `request` asks for. Errors: whatever is wrong with scenario and request, and a scenario too
/// large to keep step by step.
Result<ReplayReport> make_replay(const ReplayRequest& request);

/// Plays the `input` of a replay's JSON, or that object alone, again; `over` lays changes over it.
Result<ReplayReport> repeat_replay(std::string_view text, const std::string& source,
                                   const ReplayRequest& over);

}  // namespace flashsim
