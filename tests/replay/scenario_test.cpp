// Scenarios: what the reader takes, what it refuses and in which words, and random tensors.
#include "core/study/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/problem/library.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

const std::string kScores = R"("scores": [[1, 2, 4]], "v": [[1, 0], [0, 1], [5, 6]])";
const std::string kQkv =
    R"("q": [[1, 2], [3, 4]], "k": [[5, 6], [7, 8], [9, 10]], "v": [[1, 1], [2, 2], [3, 3]])";
const char* const kWhatTensorsAre = "give q, k and v, or scores and v, or random with seed and magnitude";

/// A scenario with these tensors and whatever else is given.
std::string scenario_text(const std::string& tensors, const std::string& rest = "") {
  return fmt::format(R"({{"schema": "flashsim.scenario/1", "tensors": {{{}}}{}{}}})", tensors,
                     rest.empty() ? "" : ", ", rest);
}

Scenario read(const std::string& text) {
  auto scenario = read_scenario(text, "a.json");
  REQUIRE(message_of(scenario) == kNoError);
  return std::move(scenario).value();
}
std::string refusal(const std::string& text) { return message_of(read_scenario(text, "a.json")); }
std::string advice(const std::string& text) { return hint_of(read_scenario(text, "a.json")); }
std::string refusal_of_tensors(const std::string& tensors) { return refusal(scenario_text(tensors)); }
std::string refusal_of_problem(const std::string& problem) {
  return refusal(scenario_text(kScores, R"("problem": )" + problem));
}
std::string refusal_of_v(const std::string& v) {
  return refusal_of_tensors(R"("scores": [[1, 2]], "v": )" + v);
}

TEST_CASE("a scenario of scores and values tells its sizes, and the rest has defaults") {
  const Scenario s = read(scenario_text(kScores));
  CHECK(s.source == "a.json");
  CHECK(s.title == "a.json");
  CHECK(s.problem.batch == 1);
  CHECK(s.problem.heads == 1);
  CHECK(s.problem.kv_heads == 1);
  CHECK(s.problem.seq == 1);
  CHECK(s.problem.kv_seq == 3);
  CHECK(s.problem.head_dim == 2);
  CHECK(s.problem.causal);
  CHECK(s.problem.alignment == CausalAlignment::bottom_right);
  CHECK_FALSE(s.problem.scale);
  CHECK(s.problem.storage == NumberType::fp32);
  CHECK(s.tiling.query_rows == 128);
  CHECK(s.tiling.key_rows == 128);
  CHECK(s.switches.subtract_max);
  CHECK(s.switches.rescale);
  CHECK(s.questions.empty());
  CHECK_FALSE(s.random);
  CHECK(s.inputs.scores_given());
  CHECK(s.inputs.scores.data() == std::vector<double>{1, 2, 4});
  CHECK(s.inputs.v.data() == std::vector<double>{1, 0, 0, 1, 5, 6});
}

TEST_CASE("every key of a scenario is read") {
  const Scenario s =
      read(scenario_text(kQkv, R"("title": "T", "problem": {"batch": 1, "heads": 1, "kv_heads": 1,
    "seq": 2, "kv_seq": 3, "head_dim": 2, "causal": false, "causal_alignment": "top-left", "scale": 0.5, "dtype": "fp64"},
    "tiling": {"query_rows": 3, "key_rows": 7}, "switches": {"subtract_max": false, "rescale": false},
    "questions": ["Why?", "How?"])"));
  CHECK(s.title == "T");
  CHECK(s.problem.seq == 2);
  CHECK(s.problem.kv_seq == 3);
  CHECK_FALSE(s.problem.causal);
  CHECK(s.problem.alignment == CausalAlignment::top_left);
  CHECK(s.problem.scale == 0.5);
  CHECK(s.problem.storage == NumberType::fp64);
  CHECK(s.tiling.query_rows == 3);
  CHECK(s.tiling.key_rows == 7);
  CHECK_FALSE(s.switches.subtract_max);
  CHECK_FALSE(s.switches.rescale);
  CHECK(s.questions == std::vector<std::string>{"Why?", "How?"});
  CHECK_FALSE(s.inputs.scores_given());
  CHECK(s.inputs.q.data() == std::vector<double>{1, 2, 3, 4});
  CHECK(s.inputs.k.data() == std::vector<double>{5, 6, 7, 8, 9, 10});
}

TEST_CASE("tensors are [N][d], [H][N][d] or [B][H][N][d]") {
  const Scenario heads =
      read(scenario_text(R"("q": [[[1]], [[2]], [[3]], [[4]]], "k": [[[5], [6]], [[7], [8]]],
    "v": [[[5], [6]], [[7], [8]]])"));
  CHECK(heads.problem.batch == 1);
  CHECK(heads.problem.heads == 4);
  CHECK(heads.problem.kv_heads == 2);
  CHECK(heads.problem.seq == 1);
  CHECK(heads.problem.kv_seq == 2);
  CHECK(heads.problem.head_dim == 1);
  CHECK(heads.inputs.k.matrix(0, 1)(1, 0) == 8);
  const Scenario batch = read(scenario_text(R"("q": [[[[1, 2]]], [[[3, 4]]]], "k": [[[[5, 6]]], [[[7, 8]]]],
    "v": [[[[5, 6]]], [[[7, 9]]]])"));
  CHECK(batch.problem.batch == 2);
  CHECK(batch.problem.heads == 1);
  CHECK(batch.problem.head_dim == 2);
  CHECK(batch.inputs.v.matrix(1, 0)(0, 1) == 9);
  // One tensor may leave out what another spells out.
  CHECK(read(scenario_text(R"("q": [[[[1, 2]]]], "k": [[3, 4]], "v": [[[5, 6]]])")).problem.head_dim == 2);
}

TEST_CASE("numbers that aren't finite are texts") {
  const Scenario s = read(scenario_text(
      R"("scores": [["NaN", "Infinity", "-Infinity"]], "v": [["-Infinity"], ["NaN"], [-0.0]])"));
  const std::vector<double>& scores = s.inputs.scores.data();
  CHECK(std::isnan(scores[0]));
  CHECK(scores[1] == std::numeric_limits<double>::infinity());
  CHECK(scores[2] == -std::numeric_limits<double>::infinity());
  CHECK(s.inputs.v.data()[0] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(s.inputs.v.data()[1]));
  CHECK(std::signbit(s.inputs.v.data()[2]));
  for (const char* text : {"inf", "nan", "+Infinity", "1", ""}) {
    CHECK(refusal_of_v(fmt::format(R"([["{}"], [1]])", text)) ==
          fmt::format(R"(a.json: tensors.v[0][0] must be a number, not "{}")", text));
  }
}

TEST_CASE("random scenarios say their sizes, and key/value sizes follow the query's") {
  const Scenario s = read(scenario_text(R"("random": {"seed": 7, "magnitude": 2.5})",
                                        R"("problem": {"heads": 4, "seq": 5, "head_dim": 3})"));
  REQUIRE(s.random);
  CHECK(s.random->seed == 7);
  CHECK(s.random->magnitude == 2.5);
  CHECK(s.problem.batch == 1);
  CHECK(s.problem.kv_heads == 4);
  CHECK(s.problem.kv_seq == 5);
  const Scenario bare =
      read(scenario_text(R"("random": {})", R"("problem": {"seq": 5, "kv_seq": 6, "head_dim": 3})"));
  CHECK(bare.random->seed == 0);
  CHECK(bare.random->magnitude == 1);
  CHECK(bare.problem.heads == 1);
  CHECK(bare.problem.kv_seq == 6);
}

TEST_CASE("what isn't JSON, or isn't whole, is refused with its place") {
  CHECK(refusal("") == "a.json isn't valid JSON: it ends too early, at line 1, column 1");
  const std::string whole = scenario_text(kScores, R"("title": "T")");
  CHECK(refusal(whole.substr(0, 30)) == "a.json isn't valid JSON: it ends too early, at line 1, column 31");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(refusal(whole.substr(0, length))
              .starts_with("a.json isn't valid JSON: it ends too early, at line 1, column "));
  }
  CHECK(refusal("{\n  \"schema\": ,\n}") == "a.json isn't valid JSON: it goes wrong at line 2, column 13");
  CHECK(refusal(scenario_text(R"("scores": [[NaN]], "v": [[1]])"))
            .starts_with("a.json isn't valid JSON: it goes wrong at"));
  CHECK(refusal("[]") == "a.json must be an object, not []");
  CHECK(refusal("3") == "a.json must be an object, not 3");
}

TEST_CASE("another schema is refused") {
  CHECK(refusal(R"({"schema": "flashsim.scenario/2", "tensors": {}})") ==
        R"(a.json: schema must be "flashsim.scenario/1", not "flashsim.scenario/2")");
  CHECK(refusal(R"({"schema": "flashsim.replay/1"})") ==
        R"(a.json: schema must be "flashsim.scenario/1", not "flashsim.replay/1")");
  CHECK(refusal("{}") == R"(a.json: schema is missing: it must be "flashsim.scenario/1")");
  CHECK(refusal(R"({"schema": 1})") == "a.json: schema must be a text of one line, not 1");
}

TEST_CASE("unknown keys are refused with their path, and the nearest one is named") {
  CHECK(refusal(scenario_text(kScores, R"("titel": "T")")) == "a.json: unknown key titel");
  CHECK(advice(scenario_text(kScores, R"("titel": "T")")) ==
        "did you mean 'title'? known: problem, questions, schema, switches, tensors, tiling, title");
  CHECK(refusal_of_problem(R"({"causel": true})") == "a.json: unknown key problem.causel");
  CHECK(advice(scenario_text(kScores, R"("problem": {"causel": true})")) ==
        "did you mean 'causal'? known: batch, causal, causal_alignment, dtype, head_dim, heads, kv_heads, "
        "kv_seq, scale, seq");
  CHECK(refusal_of_tensors(kScores + R"(, "x": 1)") == "a.json: unknown key tensors.x");
  CHECK(advice(scenario_text(kScores + R"(, "vv": 1)")) ==
        "did you mean 'v'? known: k, q, random, scores, v");
  CHECK(refusal(scenario_text(R"("random": {"sed": 1})", R"("problem": {"seq": 1, "head_dim": 1})")) ==
        "a.json: unknown key tensors.random.sed");
  CHECK(advice(scenario_text(R"("random": {"sed": 1})", R"("problem": {"seq": 1, "head_dim": 1})")) ==
        "did you mean 'seed'? known: magnitude, seed");
  CHECK(refusal(scenario_text(kScores, R"("tiling": {"query_row": 1})")) ==
        "a.json: unknown key tiling.query_row");
  CHECK(advice(scenario_text(kScores, R"("tiling": {"query_row": 1})")) ==
        "did you mean 'query_rows'? known: key_rows, query_rows");
  CHECK(refusal(scenario_text(kScores, R"("switches": {"rescal": true})")) ==
        "a.json: unknown key switches.rescal");
  CHECK(advice(scenario_text(kScores, R"("switches": {"rescal": true})")) ==
        "did you mean 'rescale'? known: rescale, subtract_max");
}

TEST_CASE("the wrong set of tensors is refused") {
  const std::string wrong = "a.json: tensors has the wrong set of tensors";
  for (const char* tensors :
       {R"("v": [[1]])", R"("scores": [[1]])", R"("q": [[1]], "k": [[1]])", R"("q": [[1]], "v": [[1]])",
        R"("k": [[1]], "v": [[1]])", R"("q": [[1]], "k": [[1]], "v": [[1]], "scores": [[1]])",
        R"("q": [[1]], "scores": [[1]], "v": [[1]])", R"("random": {"seed": 1}, "v": [[1]])",
        R"("random": {"seed": 1}, "scores": [[1]], "v": [[1]])",
        R"("random": {"seed": 1}, "q": [[1]], "k": [[1]], "v": [[1]])", ""}) {
    INFO(tensors);
    CHECK(refusal_of_tensors(tensors) == wrong);
    CHECK(advice(scenario_text(tensors)) == kWhatTensorsAre);
  }
  CHECK(refusal(R"({"schema": "flashsim.scenario/1"})") == "a.json: tensors is missing");
  CHECK(advice(R"({"schema": "flashsim.scenario/1"})") == kWhatTensorsAre);
  CHECK(refusal(R"({"schema": "flashsim.scenario/1", "tensors": null})") == "a.json: tensors is missing");
  CHECK(refusal(R"({"schema": "flashsim.scenario/1", "tensors": [1]})") ==
        "a.json: tensors must be an object, not [1]");
  // null is absent.
  CHECK(refusal_of_tensors(R"("q": null, "k": null, "random": null, )" + kScores) == kNoError);
}

TEST_CASE("lists that aren't nested two to four deep are refused") {
  const std::string shapes = " must be nested lists [N][d], [H][N][d] or [B][H][N][d], not ";
  CHECK(refusal_of_v("1") == "a.json: tensors.v" + shapes + "1");
  CHECK(refusal_of_v("[1, 2]") == "a.json: tensors.v" + shapes + "[1,2]");
  CHECK(refusal_of_v("[[[[[1]]]]]") == "a.json: tensors.v" + shapes + "[[[[[1]]]]]");
  CHECK(refusal_of_v("[[[[[[1]]]]]]") == "a.json: tensors.v" + shapes + "[[[[[[1]]]]]]");
  CHECK(refusal_of_v(R"({"a": 1})") == "a.json: tensors.v" + shapes + R"({"a":1})");
  CHECK(refusal_of_v("true") == "a.json: tensors.v" + shapes + "true");
  CHECK(refusal_of_v("[]") == "a.json: tensors.v" + shapes + "[]");
  CHECK(refusal_of_tensors(R"("scores": [1, 2], "v": [[1]])") == "a.json: tensors.scores" + shapes + "[1,2]");
}

TEST_CASE("empty lists are refused") {
  for (const char* v : {"[[]]", "[[[]]]", "[[[[]]]]", "[[], []]"}) {
    CHECK(refusal_of_v(v) == "a.json: tensors.v has an empty list");
  }
}

TEST_CASE("lists of unequal length are refused with the path of the first") {
  CHECK(refusal_of_v("[[1, 2], [3]]") == "a.json: tensors.v[1] has 1 elements where 2 are expected");
  CHECK(refusal_of_v("[[1, 2], []]") == "a.json: tensors.v[1] has 0 elements where 2 are expected");
  CHECK(refusal_of_v("[[1, 2], [3, 4, 5]]") == "a.json: tensors.v[1] has 3 elements where 2 are expected");
  CHECK(refusal_of_v("[[1, 2], 3]") == "a.json: tensors.v[1] must be a list of 2, not 3");
  CHECK(refusal_of_v("[[[1, 2]], [[3, 4], [5, 6]]]") ==
        "a.json: tensors.v[1] has 2 elements where 1 are expected");
  CHECK(refusal_of_v("[[[1, 2], [3, 4]], [[5, 6], [7]]]") ==
        "a.json: tensors.v[1][1] has 1 elements where 2 are expected");
  CHECK(refusal_of_v("[[[[1], [2]]], [[[3], 4]]]") ==
        "a.json: tensors.v[1][0][1] must be a list of 1, not 4");
  CHECK(refusal_of_tensors(R"("q": [[1], [2, 3]], "k": [[1]], "v": [[1]])") ==
        "a.json: tensors.q[1] has 2 elements where 1 are expected");
}

TEST_CASE("elements that aren't numbers are refused with their path") {
  CHECK(refusal_of_v(R"([[1], ["x"]])") == R"(a.json: tensors.v[1][0] must be a number, not "x")");
  CHECK(refusal_of_v("[[1, null]]") == "a.json: tensors.v[0][1] must be a number, not null");
  CHECK(refusal_of_v("[[1, true]]") == "a.json: tensors.v[0][1] must be a number, not true");
  CHECK(refusal_of_v("[[1, [2]]]") == "a.json: tensors.v[0][1] must be a number, not [2]");
  CHECK(refusal_of_v("[[[[1, 2], [3, {}]]]]") == "a.json: tensors.v[0][0][1][1] must be a number, not {}");
}

TEST_CASE("tensors that don't belong together are refused with both shapes") {
  CHECK(refusal_of_tensors(R"("q": [[1]], "k": [[1], [2]], "v": [[1]])") ==
        "a.json: tensors.k is [1][1][2][1] and v is [1][1][1][1]: they must have one shape");
  CHECK(refusal_of_tensors(R"("q": [[1]], "k": [[1]], "v": [[1, 2]])") ==
        "a.json: tensors.k is [1][1][1][1] and v is [1][1][1][2]: they must have one shape");
  CHECK(refusal_of_tensors(R"("q": [[1, 2]], "k": [[1]], "v": [[1]])") ==
        "a.json: tensors.q is [1][1][1][2] and k is [1][1][1][1]: batch and head dimension "
        "must agree");
  CHECK(refusal_of_tensors(R"("q": [[[[1]]], [[[1]]]], "k": [[1]], "v": [[1]])") ==
        "a.json: tensors.q is [2][1][1][1] and k is [1][1][1][1]: batch and head dimension "
        "must agree");
  CHECK(refusal_of_tensors(R"("q": [[[1]], [[2]], [[3]]], "k": [[[1]], [[2]]], "v": [[[1]], [[2]]])") ==
        "a.json: problem: 3 query heads can't share 2 key/value heads evenly");
  CHECK(refusal_of_tensors(R"("scores": [[1, 2]], "v": [[1], [2], [3]])") ==
        "a.json: tensors.scores has 2 keys and v has 3");
  const std::string one_head = "a.json: tensors.scores and v must be of one head: [N][Nkv] and [Nkv][d]";
  CHECK(refusal_of_tensors(R"("scores": [[[1]], [[2]]], "v": [[1]])") == one_head);
  CHECK(refusal_of_tensors(R"("scores": [[1]], "v": [[[1]], [[2]]])") == one_head);
}

TEST_CASE("sizes that are stated must be those of the tensors") {
  CHECK(refusal_of_problem(R"({"seq": 2})") == "a.json: problem.seq is 2, and the tensors have 1");
  CHECK(refusal_of_problem(R"({"kv_seq": 2})") == "a.json: problem.kv_seq is 2, and the tensors have 3");
  CHECK(refusal_of_problem(R"({"head_dim": 3})") == "a.json: problem.head_dim is 3, and the tensors have 2");
  CHECK(refusal_of_problem(R"({"batch": 2})") == "a.json: problem.batch is 2, and the tensors have 1");
  CHECK(refusal_of_problem(R"({"heads": 2})") == "a.json: problem.heads is 2, and the tensors have 1");
  CHECK(refusal_of_problem(R"({"kv_heads": 2})") == "a.json: problem.kv_heads is 2, and the tensors have 1");
  CHECK(refusal_of_problem(
            R"({"batch": 1, "heads": 1, "kv_heads": 1, "seq": 1, "kv_seq": 3, "head_dim": 2})") == kNoError);
}

TEST_CASE("random tensors need sizes, and not too many elements") {
  const auto random = [](const std::string& problem, const std::string& tensors = "") {
    return scenario_text(fmt::format(R"("random": {{{}}})", tensors), R"("problem": )" + problem);
  };
  CHECK(refusal(random("{}")) == "a.json: problem.seq is missing");
  CHECK(advice(random("{}")) == "random tensors don't tell it");
  CHECK(refusal(random(R"({"seq": 3})")) == "a.json: problem.head_dim is missing");
  CHECK(refusal(scenario_text(R"("random": {})")) == "a.json: problem.seq is missing");
  CHECK(refusal(random(R"({"seq": 1, "head_dim": 1, "heads": 3, "kv_heads": 2})")) ==
        "a.json: problem: 3 query heads can't share 2 key/value heads evenly");
  CHECK(refusal(random(R"({"seq": 1, "head_dim": 1})", R"("seed": -1)")) ==
        "a.json: tensors.random.seed must be at least 0, not -1");
  CHECK(refusal(random(R"({"seq": 1, "head_dim": 1})", R"("seed": 1.5)")) ==
        "a.json: tensors.random.seed must be a whole number, not 1.5");
  CHECK(refusal(random(R"({"seq": 1, "head_dim": 1})", R"("magnitude": "big")")) ==
        R"(a.json: tensors.random.magnitude must be a finite number, not "big")");
  // 2²⁴ elements of Q, K and V together, and one row more.
  CHECK(refusal(random(R"({"seq": 8192, "kv_seq": 4096, "head_dim": 1024})")) == kNoError);
  CHECK(refusal(random(R"({"seq": 8193, "kv_seq": 4096, "head_dim": 1024})")) ==
        "a.json: the tensors have more than 16777216 elements (B 1 · H 1 · N 8193 · Nkv 4096 · d 1024)");
  CHECK(refusal(random(R"({"batch": 1099511627776, "seq": 1099511627776, "head_dim": 1099511627776})")) ==
        "a.json: the tensors have more than 16777216 elements (B 1099511627776 · H 1 · N 1099511627776 · d "
        "1099511627776)");
}

TEST_CASE("wrong values are refused with their path") {
  CHECK(refusal_of_problem("3") == "a.json: problem must be an object, not 3");
  CHECK(refusal_of_problem(R"({"seq": 0})") ==
        "a.json: problem.seq must be a whole number from 1 to 1099511627776, not 0");
  CHECK(refusal_of_problem(R"({"seq": 1.5})") == "a.json: problem.seq must be a whole number, not 1.5");
  CHECK(refusal_of_problem(R"({"causal": 1})") == "a.json: problem.causal must be true or false, not 1");
  CHECK(refusal_of_problem(R"({"scale": "NaN"})") ==
        R"(a.json: problem.scale must be a finite number, not "NaN")");
  CHECK(refusal_of_problem(R"({"causal_alignment": "bottom"})") ==
        "a.json: problem.causal_alignment: unknown causal alignment 'bottom'");
  CHECK(advice(scenario_text(kScores, R"("problem": {"causal_alignment": "top-lefft"})")) ==
        "did you mean 'top-left'? known: bottom-right, top-left");
  CHECK(refusal_of_problem(R"({"dtype": "fp23"})") == "a.json: problem.dtype: unknown type 'fp23'");
  for (const char* type : {"fp8", "fp16", "bf16"}) {
    CHECK(refusal_of_problem(fmt::format(R"({{"dtype": "{}"}})", type)) ==
          fmt::format("a.json: problem.dtype is {}: a scenario is executed in fp32 or fp64", type));
  }
  const auto with = [](const std::string& rest) { return refusal(scenario_text(kScores, rest)); };
  CHECK(with(R"("title": 3)") == "a.json: title must be a text of one line, not 3");
  CHECK(with(R"("tiling": [])") == "a.json: tiling must be an object, not []");
  CHECK(with(R"("tiling": {"key_rows": 0})") ==
        "a.json: tiling.key_rows must be a whole number from 1 to 1099511627776, not 0");
  CHECK(with(R"("switches": {"rescale": "no"})") ==
        R"(a.json: switches.rescale must be true or false, not "no")");
  CHECK(with(R"("switches": true)") == "a.json: switches must be an object, not true");
  CHECK(with(R"("questions": "Why?")") == R"(a.json: questions must be a list of texts, not "Why?")");
  CHECK(with(R"("questions": ["Why?", 3])") ==
        "a.json: questions must be a list of texts of one line, and has 3");
}

TEST_CASE("a file is called by its path, and its absence is told") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("s.json", scenario_text(kScores, R"("titel": "T")"));
  CHECK(message_of(find_scenario(path)) == fmt::format("'{}': unknown key titel", path));
  CHECK(message_of(find_scenario(folder.file("good.json", scenario_text(kScores)))) == kNoError);
  CHECK(message_of(find_scenario(folder / "none.json")) != kNoError);
}

TEST_CASE("every built-in scenario can be read, and asks something") {
  REQUIRE(built_in_names("scenarios").size() >= 3);
  for (const std::string& name : built_in_names("scenarios")) {
    INFO(name);
    const auto scenario = find_scenario(name);
    REQUIRE(message_of(scenario) == kNoError);
    CHECK(scenario->title != name);
    CHECK(scenario->questions.size() >= 2);
  }
}

Scenario random_scenario(std::uint64_t seed, double magnitude) {
  return {.problem = {.batch = 2, .heads = 3, .kv_heads = 1, .seq = 50, .kv_seq = 40, .head_dim = 8},
          .random = RandomTensors{seed, magnitude}};
}

TEST_CASE(
    "random tensors are the same every time, have the problem's shape and stay within their magnitude") {
  const Inputs<double> in = random_scenario(7, 2.5).tensors();
  CHECK(in.q.data().size() == 2 * 3 * 50 * 8);
  CHECK(in.k.data().size() == 2 * 1 * 40 * 8);
  CHECK(in.v.rows() == 40);
  CHECK(in.q.heads() == 3);
  CHECK(in.k.heads() == 1);
  CHECK_FALSE(in.scores_given());
  const Inputs<double> again = random_scenario(7, 2.5).tensors();
  CHECK(in.q.data() == again.q.data());
  CHECK(in.k.data() == again.k.data());
  CHECK(in.v.data() == again.v.data());
  const std::vector<double> other = random_scenario(8, 2.5).tensors().q.data();
  CHECK(in.q.data() != other);
  for (const Tensor4<double>* tensor : {&in.q, &in.k, &in.v}) {
    const auto [least, most] = std::minmax_element(tensor->data().begin(), tensor->data().end());
    CHECK(*least > -2.5);
    CHECK(*most < 2.5);
    // Uniform: the ends are reached and the mean is near 0.
    CHECK(*least < -2.3);
    CHECK(*most > 2.3);
    double sum = 0;
    for (const double value : tensor->data()) sum += value;
    CHECK(std::fabs(sum / static_cast<double>(tensor->data().size())) < 0.2);
  }
  // 64-bit Mersenne twister, seeded with 5489, starts with 14514284786278117030: the top 53 bits and a half.
  const double first = (static_cast<double>(14514284786278117030ULL >> 11) + 0.5) / 9007199254740992.0;
  CHECK(random_scenario(5489, 1).tensors().q.data()[0] == 2 * first - 1);
}

TEST_CASE("a magnitude multiplies given scores, or Q, and is what random tensors are drawn with") {
  Scenario scores = read(scenario_text(kScores));
  scores.set_magnitude(-3);
  CHECK(scores.inputs.scores.data() == std::vector<double>{-3, -6, -12});
  CHECK(scores.inputs.v.data() == std::vector<double>{1, 0, 0, 1, 5, 6});
  Scenario products = read(scenario_text(kQkv));
  products.set_magnitude(10);
  CHECK(products.inputs.q.data() == std::vector<double>{10, 20, 30, 40});
  CHECK(products.inputs.k.data() == std::vector<double>{5, 6, 7, 8, 9, 10});
  Scenario random = random_scenario(7, 1);
  random.set_magnitude(4);
  CHECK(random.random->magnitude == 4);
  CHECK(random.tensors().q.data()[0] == 4 * random_scenario(7, 1).tensors().q.data()[0]);
}

}  // namespace
}  // namespace flashsim
