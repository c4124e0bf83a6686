// A scenario's JSON gives the scenario back, and a replay's JSON the replay.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/replay/replays.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;
using test::kNoError;
using test::message_of;
using test::replayed;
using test::same_frames;
using test::succeeded;

const char* const kStrange = R"({"schema": "flashsim.scenario/1", "title": "strange \"numbers\" − ∞",
  "problem": {"causal": true, "causal_alignment": "top-left", "scale": 0.3, "dtype": "fp64"},
  "tensors": {"q": [[[0.1, 1e-310], ["Infinity", 3]], [[1e300, -0.0], [7, 8]]],
              "k": [[["NaN", 2], [0.3333333333333333, 4], [5, 6]]],
              "v": [[["-Infinity", 1], [2, 3], [4, 5]]]},
  "tiling": {"query_rows": 1, "key_rows": 2}, "switches": {"subtract_max": true, "rescale": false},
  "questions": ["Eh?"]})";
const char* const kRandom = R"({"schema": "flashsim.scenario/1", "title": "random",
  "problem": {"batch": 2, "heads": 4, "kv_heads": 2, "seq": 5, "kv_seq": 7, "head_dim": 3},
  "tensors": {"random": {"seed": 9223372036854775807, "magnitude": 1.25}}, "tiling": {"query_rows": 2, "key_rows": 3}})";

Scenario read(const std::string& text) {
  auto scenario = read_scenario(text, "a.json");
  REQUIRE(message_of(scenario) == kNoError);
  return std::move(scenario).value();
}

/// The built-in scenarios, one with numbers that text could lose, and a random one.
std::vector<Scenario> scenarios() {
  std::vector<Scenario> all{read(kStrange), read(kRandom)};
  for (const char* name : {"three-token", "max-changes", "break-it"})
    all.push_back(find_scenario(name).value());
  return all;
}

bool same_bits(const Tensor4<double>& a, const Tensor4<double>& b) {
  if (a.batch() != b.batch() || a.heads() != b.heads() || a.rows() != b.rows() || a.columns() != b.columns())
    return false;
  for (std::size_t i = 0; i < a.data().size(); ++i) {
    const bool both_nan = std::isnan(a.data()[i]) && std::isnan(b.data()[i]);
    if (!both_nan && std::memcmp(&a.data()[i], &b.data()[i], sizeof(double)) != 0) return false;
  }
  return true;
}

TEST_CASE("a scenario written as JSON and read again is the same scenario") {
  for (const Scenario& s : scenarios()) {
    INFO(s.title);
    const Scenario again = read(json_text(scenario_json(s)));
    CHECK(again.title == s.title);
    CHECK(again.problem.batch == s.problem.batch);
    CHECK(again.problem.heads == s.problem.heads);
    CHECK(again.problem.kv_heads == s.problem.kv_heads);
    CHECK(again.problem.seq == s.problem.seq);
    CHECK(again.problem.kv_seq == s.problem.kv_seq);
    CHECK(again.problem.head_dim == s.problem.head_dim);
    CHECK(again.problem.causal == s.problem.causal);
    CHECK(again.problem.alignment == s.problem.alignment);
    CHECK(again.problem.score_scale() == s.problem.score_scale());
    CHECK(again.problem.storage == s.problem.storage);
    CHECK(again.tiling.query_rows == s.tiling.query_rows);
    CHECK(again.tiling.key_rows == s.tiling.key_rows);
    CHECK(again.switches.subtract_max == s.switches.subtract_max);
    CHECK(again.switches.rescale == s.switches.rescale);
    CHECK(again.questions == s.questions);
    CHECK(again.random.has_value() == s.random.has_value());
    CHECK(again.inputs.scores_given() == s.inputs.scores_given());
    CHECK(same_bits(again.tensors().q, s.tensors().q));
    CHECK(same_bits(again.tensors().k, s.tensors().k));
    CHECK(same_bits(again.tensors().v, s.tensors().v));
    CHECK(same_bits(again.tensors().scores, s.tensors().scores));
    CHECK(json_text(scenario_json(again)) == json_text(scenario_json(s)));
  }
}

/// The text that `flashsim replay --format json` prints.
std::string text_of(const ReplayReport& report) { return json_text(replay_json(report)); }

TEST_CASE("a replay's JSON repeats the run, frame by frame and word by word") {
  std::vector<ReplayReport> reports;
  for (const Scenario& s : scenarios()) {
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2})
      reports.push_back(replayed(s, algorithm));
  }
  reports.push_back(replayed({.scenario = "three-token", .row = 2}));
  reports.push_back(replayed({.scenario = "break-it",
                              .algorithm = Algorithm::flash1,
                              .compute = NumberType::fp64,
                              .tiles = {1, 3},
                              .magnitude = 7.5,
                              .no_subtract_max = true,
                              .no_rescale = true}));
  reports.push_back(replayed({.scenario = "break-it", .magnitude = 30, .no_subtract_max = true}));
  std::set<std::string> texts;
  for (const ReplayReport& report : reports) {
    const std::string text = text_of(report);
    INFO(report.scenario.title);
    const ReplayReport again = succeeded(repeat_replay(text, "r.json", {}));
    CHECK(same_frames(again.tiled, report.tiled));
    CHECK(same_frames(again.standard, report.standard));
    CHECK(again.tiled.frames.size() > 0);
    CHECK(again.verdict == report.verdict);
    CHECK(text_of(again) == text);
    // `input` alone does as well.
    CHECK(text_of(succeeded(repeat_replay(ordered_json::parse(text)["input"].dump(), "r.json", {}))) == text);
    texts.insert(text);
  }
  CHECK(texts.size() == reports.size());  // no two of them are alike
}

TEST_CASE("changes are laid over a repeated replay") {
  const std::string text = text_of(replayed({.scenario = "break-it"}));
  const auto over = [&](const ReplayRequest& request) {
    return succeeded(repeat_replay(text, "r.json", request));
  };
  CHECK(over({.row = 0}).row == 0);
  CHECK(over({.algorithm = Algorithm::flash1}).tiled.algorithm == Algorithm::flash1);
  CHECK(over({.compute = NumberType::fp64}).compute == NumberType::fp64);
  CHECK(over({}).compute == NumberType::fp32);
  CHECK(over({.tiles = {.key_rows = 5}}).scenario.tiling.key_rows == 5);
  CHECK(over({.tiles = {.key_rows = 5}}).scenario.tiling.query_rows == 1);
  CHECK(over({.magnitude = 2}).scenario.inputs.scores.data()[0] == 1);
  CHECK(over({.no_rescale = true}).verdict == Verdict::broken);
  CHECK_FALSE(over({.no_subtract_max = true}).scenario.switches.subtract_max);
  CHECK(message_of(repeat_replay(text, "r.json", {.row = 1})) ==
        "--row must be a whole number from 0 to 0, not 1");
}

TEST_CASE("what a repeated replay states of itself goes before its scenario, and a change before both") {
  const std::string scenario = scenario_json(find_scenario("three-token").value()).dump();
  const std::string text =
      R"({"algorithm": "flash1", "compute": "fp64", "row": 2, "scenario": )" + scenario + "}";
  const ReplayReport stated = succeeded(repeat_replay(text, "r.json", {}));
  CHECK(stated.tiled.algorithm == Algorithm::flash1);
  CHECK(stated.compute == NumberType::fp64);  // the scenario says fp32
  CHECK(stated.row == 2);
  const ReplayReport changed =
      succeeded(repeat_replay(text, "r.json", {.compute = NumberType::fp32, .row = 1}));
  CHECK(changed.compute == NumberType::fp32);
  CHECK(changed.row == 1);
}

TEST_CASE("the JSON of a replay holds every frame, and writes what isn't finite as text") {
  const ReplayReport report = replayed({.scenario = "three-token"});
  const ordered_json json = replay_json(report);
  CHECK(json["schema"] == "flashsim.replay/1");
  CHECK(json["input"]["algorithm"] == "flash2");
  CHECK(json["input"]["compute"] == "fp32");
  CHECK(json["input"]["row"].is_null());
  CHECK(json["result"]["algorithm"] == "flash2");
  CHECK(json["result"]["standard"]["algorithm"] == "standard");
  CHECK(json["result"]["verdict"] == "right");
  CHECK(json["result"]["frames"].size() == report.tiled.frames.size());
  CHECK(json["result"]["standard"]["frames"].size() == report.standard.frames.size());
  const ordered_json& reset = json["result"]["frames"][1];
  CHECK(reset["operation"] == "reset");
  CHECK(reset["values"]["m"] == ordered_json{"-Infinity"});
  CHECK(reset["values"]["O"] == ordered_json::parse("[[0.0, 0.0]]"));
  const ordered_json& load = json["result"]["frames"][0];
  CHECK(load["tensor"] == "Q");
  CHECK(load["key_tile"].is_null());
  CHECK(load["query_tile"] == 0);
  CHECK(load["hbm_read_bytes"] == 8);
  // The whole text parses back to itself.
  CHECK(json_text(ordered_json::parse(json_text(json))) == json_text(json));
  const ordered_json broken =
      replay_json(replayed({.scenario = "break-it", .magnitude = 30, .no_subtract_max = true}));
  CHECK(broken["result"]["verdict"] == "broken on purpose");
  CHECK(broken["result"]["output"] == ordered_json::parse(R"([[[["NaN"]]]])"));
  CHECK(broken["result"]["error"]["output_max_abs"] == "NaN");
}

TEST_CASE("what is wrong with a repeated replay is told with its path") {
  const auto refusal = [](const std::string& text) { return message_of(repeat_replay(text, "r.json", {})); };
  CHECK(refusal("{") == "r.json isn't valid JSON: it ends too early, at line 1, column 2");
  CHECK(refusal("[1]") == "r.json must be an object, not [1]");
  CHECK(refusal("{}") == "r.json: scenario is missing");
  CHECK(refusal(R"({"input": {}})") == "r.json: input.scenario is missing");
  CHECK(refusal(R"({"input": 3})") == "r.json: input must be an object, not 3");
  CHECK(refusal(R"({"input": {"scenario": {}, "rows": 1}})") == "r.json: unknown key input.rows");
  CHECK(refusal(R"({"input": {"scenario": 3}})") == "r.json: input.scenario must be an object, not 3");
  CHECK(refusal(R"({"scenario": {}, "algorithm": "standard"})") ==
        R"(r.json: algorithm must be a tiled algorithm with an online softmax, not "standard")");
  CHECK(refusal(R"({"scenario": {}, "algorithm": "flush2"})") ==
        "r.json: algorithm: unknown algorithm 'flush2'");
  CHECK(refusal(R"({"scenario": {}, "compute": "fp16"})") ==
        R"(r.json: compute must be "fp32" or "fp64", not "fp16")");
  CHECK(refusal(R"({"scenario": {}, "row": "last"})") == R"(r.json: row must be a whole number, not "last")");
  CHECK(refusal(R"({"input": {"scenario": {}}})") ==
        R"(r.json: input.scenario: schema is missing: it must be "flashsim.scenario/1")");
  CHECK(
      refusal(
          R"({"input": {"scenario": {"schema": "flashsim.scenario/1", "tensors": {"scores": [[1]], "v": [[1], [2]]}}}})") ==
      "r.json: input.scenario: tensors.scores has 1 keys and v has 2");
}

}  // namespace
}  // namespace flashsim
