// Reports as JSON. docs/schema describes each; the tests hold the one against the other.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/study/account.hpp"
#include "core/study/cache.hpp"
#include "core/study/compare.hpp"
#include "core/study/replay.hpp"
#include "core/study/run.hpp"
#include "core/study/sweep.hpp"
#include "core/study/tune.hpp"

namespace flashsim {

/// "flashsim.account/1"; `explain` adds each figure's formula.
nlohmann::ordered_json account_json(const AccountReport& report, bool explain);
/// "flashsim.compare/1"
nlohmann::ordered_json compare_json(const CompareReport& report, bool explain);
/// "flashsim.replay/1"
nlohmann::ordered_json replay_json(const ReplayReport& report);
/// "flashsim.run/1"
nlohmann::ordered_json run_json(const RunReport& report);
/// "flashsim.sweep/1"
nlohmann::ordered_json sweep_json(const SweepReport& report);
/// "flashsim.tune/1"
nlohmann::ordered_json tune_json(const TuneReport& report);

/// "flashsim.cache/1"; `explain` adds each figure's formula.
nlohmann::ordered_json cache_json(const CacheReport& report, bool explain);

/// The list of formulas that --explain adds to a result.
nlohmann::ordered_json explanations_json(const std::vector<ExplainedFigure>& figures);

/// JSON as text, two spaces a level, lists of plain values on one line.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace flashsim
