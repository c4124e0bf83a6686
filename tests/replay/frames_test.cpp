// What a replay shows: the built-in scenarios by hand, and the frames of any scenario against the account,
// the algorithm and each other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/account/prediction.hpp"
#include "core/study/replay.hpp"
#include "core/study/report_json.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/random_problem.hpp"
#include "tests/replay/replays.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::kNoError;
using test::message_of;
using test::replayed;
using test::replayed_text;
using test::same_frames;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Numbers = std::vector<double>;

/// The frame of `operation` on a pair of tiles. Steps on whole rows have no key tile: −1.
const Frame& frame_of(const Recording& recording, Operation operation, std::int64_t query_tile,
                      std::int64_t key_tile) {
  for (const Frame& frame : recording.frames) {
    const Step& step = frame.step;
    if (step.operation == operation && step.query_tile == query_tile && step.key_tile == key_tile)
      return frame;
  }
  FAIL("no " << name_of(operation) << " on " << query_tile << ", " << key_tile);
  return recording.frames.front();
}

Numbers numbers_in(const Frame& frame, ChipValue value) {
  const NumberMatrix* matrix = frame.find(value);
  if (matrix == nullptr) FAIL("no " << name_of(value) << " after " << name_of(frame.step.operation));
  return matrix->numbers;
}

/// The value on the chip after that step.
Numbers after(const Recording& recording, Operation operation, std::int64_t query_tile, std::int64_t key_tile,
              ChipValue value) {
  return numbers_in(frame_of(recording, operation, query_tile, key_tile), value);
}

bool near(const Numbers& got, const Numbers& expected, double tolerance) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool equal = got[i] == expected[i] || std::fabs(got[i] - expected[i]) <= tolerance;
    if (!equal) return false;
  }
  return true;
}

TEST_CASE("three tokens: row 1 ends with the first tile, and row 2 carries m, l and o to the second") {
  const ReplayReport report = replayed({.scenario = "three-token"});
  const Recording& tiled = report.tiled;
  CHECK(after(tiled, Operation::accumulate, 1, 0, ChipValue::O) == Numbers{10, 20});
  CHECK(after(tiled, Operation::rescale, 1, 0, ChipValue::l) == Numbers{2});
  CHECK(after(tiled, Operation::finish, 1, -1, ChipValue::O) == Numbers{5, 10});
  CHECK(after(tiled, Operation::store, 1, -1, ChipValue::O) == Numbers{5, 10});
  for (const Frame& frame : tiled.frames) CHECK((frame.step.query_tile != 1 || frame.step.key_tile != 1));

  CHECK(after(tiled, Operation::reset, 2, -1, ChipValue::m) == Numbers{-kInfinity});
  CHECK(after(tiled, Operation::reset, 2, -1, ChipValue::l) == Numbers{0});
  CHECK(after(tiled, Operation::reset, 2, -1, ChipValue::O) == Numbers{0, 0});
  CHECK(after(tiled, Operation::online_softmax, 2, 0, ChipValue::m) == Numbers{0});
  CHECK(after(tiled, Operation::rescale, 2, 0, ChipValue::r) == Numbers{0});  // from −∞ to 0
  CHECK(after(tiled, Operation::rescale, 2, 0, ChipValue::l) == Numbers{2});
  CHECK(after(tiled, Operation::accumulate, 2, 0, ChipValue::O) == Numbers{10, 20});

  CHECK(after(tiled, Operation::load, 2, 1, ChipValue::K) == Numbers{0, 0});
  CHECK(after(tiled, Operation::online_softmax, 2, 1, ChipValue::m_before) == Numbers{0});
  CHECK(after(tiled, Operation::rescale, 2, 1, ChipValue::r) == Numbers{1});
  CHECK(after(tiled, Operation::rescale, 2, 1, ChipValue::l_before) == Numbers{2});
  CHECK(after(tiled, Operation::rescale, 2, 1, ChipValue::row_sum) == Numbers{1});
  CHECK(after(tiled, Operation::rescale, 2, 1, ChipValue::l) == Numbers{3});
  CHECK(after(tiled, Operation::rescale, 2, 1, ChipValue::O) == Numbers{10, 20});
  CHECK(after(tiled, Operation::accumulate, 2, 1, ChipValue::O) == Numbers{40, 50});
  CHECK(near(after(tiled, Operation::finish, 2, -1, ChipValue::O), {40.0 / 3, 50.0 / 3}, 2e-6));
  CHECK(near(after(tiled, Operation::finish, 2, -1, ChipValue::L), {std::log(3.0)}, 2e-7));
  CHECK(report.verdict == Verdict::right);
}

TEST_CASE("three tokens the standard way: scores, masked scores, probabilities") {
  const Recording& standard = replayed({.scenario = "three-token"}).standard;
  const auto row = [&](Operation operation, std::int64_t i) {
    Numbers whole = after(standard, operation, i, 0, ChipValue::S);
    const Numbers rest = after(standard, operation, i, 1, ChipValue::S);
    whole.insert(whole.end(), rest.begin(), rest.end());
    return whole;
  };
  for (std::int64_t i = 0; i < 3; ++i) CHECK(row(Operation::scores, i) == Numbers{0, 0, 0});
  CHECK(row(Operation::mask, 0) == Numbers{0, -kInfinity, -kInfinity});
  CHECK(row(Operation::mask, 1) == Numbers{0, 0, -kInfinity});
  CHECK(row(Operation::mask, 2) == Numbers{0, 0, 0});
  CHECK(after(standard, Operation::softmax, 0, -1, ChipValue::P) == Numbers{1, 0, 0});
  CHECK(after(standard, Operation::softmax, 1, -1, ChipValue::P) == Numbers{0.5, 0.5, 0});
  CHECK(near(after(standard, Operation::softmax, 2, -1, ChipValue::P), {1.0 / 3, 1.0 / 3, 1.0 / 3}, 3e-8));
  CHECK(after(standard, Operation::store, 0, -1, ChipValue::O) == Numbers{10, 0});
  CHECK(after(standard, Operation::store, 1, -1, ChipValue::O) == Numbers{5, 10});
  CHECK(near(after(standard, Operation::store, 2, -1, ChipValue::O), {40.0 / 3, 50.0 / 3}, 2e-6));
}

TEST_CASE("when the maximum rises, what was counted before is scaled down") {
  const ReplayReport report = replayed({.scenario = "max-changes", .compute = NumberType::fp64});
  const Recording& tiled = report.tiled;
  const double e1 = std::exp(-1.0);
  const double e2 = std::exp(-2.0);
  CHECK(after(tiled, Operation::scores, 0, 0, ChipValue::S) == Numbers{1, 2});
  CHECK(after(tiled, Operation::online_softmax, 0, 0, ChipValue::m) == Numbers{2});
  CHECK(near(after(tiled, Operation::online_softmax, 0, 0, ChipValue::P), {e1, 1}, 1e-15));
  CHECK(near(after(tiled, Operation::rescale, 0, 0, ChipValue::l), {1 + e1}, 1e-15));
  CHECK(after(tiled, Operation::online_softmax, 0, 1, ChipValue::m_before) == Numbers{2});
  CHECK(after(tiled, Operation::online_softmax, 0, 1, ChipValue::m) == Numbers{4});
  CHECK(near(after(tiled, Operation::rescale, 0, 1, ChipValue::r), {e2}, 1e-15));
  CHECK(near(after(tiled, Operation::rescale, 0, 1, ChipValue::l), {e2 * (1 + e1) + 1}, 1e-15));
  CHECK(near(after(tiled, Operation::rescale, 0, 1, ChipValue::O), {e2 * e1, e2, 0}, 1e-15));
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  const Numbers weights{std::exp(1.0) / sum, std::exp(2.0) / sum, std::exp(4.0) / sum};
  CHECK(near(after(tiled, Operation::store, 0, -1, ChipValue::O), weights, 1e-15));
  CHECK(near(after(report.standard, Operation::softmax, 0, -1, ChipValue::P), weights, 1e-15));
  CHECK(near(tiled.outputs.o.data(), {0.042010, 0.114195, 0.843795}, 1e-6));
  CHECK(near(tiled.outputs.lse.data(), {std::log(sum)}, 1e-15));
}

TEST_CASE("without rescaling the early weights are too large by e to the rise of the maximum") {
  const ReplayReport right = replayed({.scenario = "max-changes", .compute = NumberType::fp64});
  const ReplayReport broken =
      replayed({.scenario = "max-changes", .compute = NumberType::fp64, .no_rescale = true});
  CHECK(broken.verdict == Verdict::broken);
  CHECK(after(broken.tiled, Operation::rescale, 0, 1, ChipValue::r) == Numbers{1});
  const double e1 = std::exp(-1.0);
  const double l = 2 + e1;
  CHECK(near(broken.tiled.outputs.o.data(), {e1 / l, 1 / l, 1 / l}, 1e-15));
  const Numbers o = broken.tiled.outputs.o.data();
  const Numbers should = right.tiled.outputs.o.data();
  // The first two against the third: too large by e².
  CHECK(std::fabs((o[0] / o[2]) / (should[0] / should[2]) - std::exp(2.0)) < 1e-12);
  CHECK(std::fabs((o[1] / o[2]) / (should[1] / should[2]) - std::exp(2.0)) < 1e-12);
  CHECK(broken.within_tolerance(broken.standard));
}

ReplayRequest break_it(std::int64_t width, double magnitude, NumberType compute, Algorithm algorithm) {
  return {.scenario = "break-it",
          .algorithm = algorithm,
          .compute = compute,
          .tiles = {.key_rows = width},
          .magnitude = magnitude};
}

constexpr std::array kTiled{Algorithm::flash1, Algorithm::flash2};
constexpr std::array kComputed{NumberType::fp32, NumberType::fp64};

TEST_CASE("break it: no tile width changes the result, at any magnitude") {
  for (const Algorithm algorithm : kTiled) {
    for (const NumberType compute : kComputed) {
      for (const double magnitude : {1.0, 3.0, 10.0, 25.0, 40.0}) {
        for (const std::int64_t width : {1, 2, 3, 4, 8}) {
          INFO(width << " keys at magnitude " << magnitude);
          const ReplayReport report = replayed(break_it(width, magnitude, compute, algorithm));
          CHECK(report.verdict == Verdict::right);
          CHECK(report.tiled.output_error.max_abs < 1e-4);
          CHECK(report.truth.largest_score == 3 * magnitude);
        }
      }
    }
  }
}

TEST_CASE("break it: without rescaling the result is right where the first tile holds the maximum") {
  // The scores are 0.5 −1 2 1 −0.5 3 0 2.5: the sixth is the largest, so a first tile of six keys or more.
  for (const Algorithm algorithm : kTiled) {
    for (const NumberType compute : kComputed) {
      for (const double magnitude : {1.0, 6.0, 40.0}) {
        for (std::int64_t width = 1; width <= 9; ++width) {
          INFO(width << " keys at magnitude " << magnitude);
          ReplayRequest request = break_it(width, magnitude, compute, algorithm);
          request.no_rescale = true;
          const ReplayReport report = replayed(request);
          CHECK(report.verdict == (width >= 6 ? Verdict::right : Verdict::broken));
          CHECK((report.tiled.output_error.max_abs > 0.1) == (width < 6));
          CHECK(report.within_tolerance(report.standard));
        }
      }
    }
  }
}

TEST_CASE("break it: without the maximum nothing changes until the exponentials overflow") {
  for (const Algorithm algorithm : kTiled) {
    for (const std::int64_t width : {1, 2, 3, 4, 8}) {
      for (const NumberType compute : kComputed) {
        INFO(width << " keys in " << name_of(compute));
        ReplayRequest request = break_it(width, 6, compute, algorithm);
        request.no_subtract_max = true;
        CHECK(replayed(request).verdict == Verdict::right);
        request.magnitude = 30;
        const ReplayReport large = replayed(request);
        if (compute == NumberType::fp64) {
          CHECK(large.verdict == Verdict::right);
          CHECK(std::isfinite(large.tiled.outputs.o.data()[0]));
        } else {
          // e⁹⁰ is no float: ∞/∞, the standard way too.
          CHECK(large.verdict == Verdict::broken);
          CHECK(std::isnan(large.tiled.outputs.o.data()[0]));
          CHECK(std::isnan(large.standard.outputs.o.data()[0]));
          CHECK(std::isnan(large.tiled.output_error.max_abs));
        }
        const std::int64_t last = (8 + width - 1) / width - 1;
        if (algorithm == Algorithm::flash2) {
          CHECK(after(large.tiled, Operation::online_softmax, 0, last, ChipValue::m) == Numbers{0});
        }
      }
    }
  }
}

std::string three_tokens_with(const std::string& third_key) {
  return R"({"schema": "flashsim.scenario/1", "title": "copy", "problem": {"causal": true, "dtype": "fp64"},
    "tensors": {"q": [[1, 0], [1, 0], [1, 0]], "k": [[0, 0], [0, 0], )" +
         third_key + R"(],
    "v": [[10, 0], [0, 20], [30, 30]]}, "tiling": {"query_rows": 1, "key_rows": 2}})";
}

TEST_CASE("a replay comes from its numbers: a copy with another score has other frames") {
  const ReplayReport level = replayed_text(three_tokens_with("[0, 0]"));
  const ReplayReport raised =
      replayed_text(three_tokens_with("[2.8284271247461903, 0]"));  // 2 · √2, scaled to 2
  CHECK_FALSE(same_frames(level.tiled, raised.tiled));
  CHECK(near(after(level.tiled, Operation::rescale, 2, 1, ChipValue::r), {1}, 0));
  CHECK(near(after(raised.tiled, Operation::scores, 2, 1, ChipValue::S), {2}, 1e-15));
  CHECK(near(after(raised.tiled, Operation::online_softmax, 2, 1, ChipValue::m), {2}, 1e-15));
  const double r = std::exp(-2.0);
  CHECK(near(after(raised.tiled, Operation::rescale, 2, 1, ChipValue::r), {r}, 1e-15));
  CHECK(near(after(raised.tiled, Operation::rescale, 2, 1, ChipValue::l), {2 * r + 1}, 1e-15));
  CHECK(near(after(raised.tiled, Operation::accumulate, 2, 1, ChipValue::O), {10 * r + 30, 20 * r + 30},
             1e-14));
  // Rows that don't see the third key don't change.
  CHECK(after(raised.tiled, Operation::store, 1, -1, ChipValue::O) == Numbers{5, 10});
}

/// Scenarios of random shapes with random tensors, in fp32 or fp64.
std::vector<Scenario> random_scenarios(int count, std::uint64_t seed) {
  test::RandomShapes shapes(seed);
  std::vector<Scenario> scenarios;
  for (int i = 0; i < count; ++i) {
    const test::Shape shape = shapes.next(12);
    Scenario scenario{.source = "random",
                      .title = test::text_of(shape),
                      .problem = shape.problem,
                      .random = RandomTensors{seed + static_cast<std::uint64_t>(i), 2},
                      .tiling = shape.tiling};
    scenario.problem.storage = i % 2 == 0 ? NumberType::fp64 : NumberType::fp32;
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

/// A frame in a few words: "load K", "mask".
std::string words(const Frame& frame) {
  const Step& step = frame.step;
  const bool moves = step.operation == Operation::load || step.operation == Operation::store ||
                     step.operation == Operation::initialise;
  return moves ? fmt::format("{} {}", name_of(step.operation), name_of(step.operand))
               : std::string(name_of(step.operation));
}

/// Tile (i, j) holds a pair that is visible, pair by pair.
bool visited(const Problem& problem, Tiling tiling, std::int64_t i, std::int64_t j) {
  for (std::int64_t row = i * tiling.query_rows; row < std::min((i + 1) * tiling.query_rows, problem.seq);
       ++row) {
    for (std::int64_t key = j * tiling.key_rows; key < std::min((j + 1) * tiling.key_rows, problem.kv_seq);
         ++key) {
      if (test::visible(problem, row, key)) return true;
    }
  }
  return false;
}

/// What a tiled replay must show, in order, tile by tile; "/ i j" opens a pair.
std::vector<std::string> expected_words(Algorithm algorithm, const Scenario& scenario) {
  const Problem& p = scenario.problem;
  const std::int64_t query_tiles = (p.seq + scenario.tiling.query_rows - 1) / scenario.tiling.query_rows;
  const std::int64_t key_tiles = (p.kv_seq + scenario.tiling.key_rows - 1) / scenario.tiling.key_rows;
  std::vector<std::string> expected;
  const auto add = [&](std::initializer_list<const char*> all) {
    expected.insert(expected.end(), all.begin(), all.end());
  };
  for (std::int64_t head = 0; head < p.batch * p.heads; ++head) {
    if (algorithm == Algorithm::flash2) {
      for (std::int64_t i = 0; i < query_tiles; ++i) {
        add({"load Q", "reset"});
        for (std::int64_t j = 0; j < key_tiles; ++j) {
          if (!visited(p, scenario.tiling, i, j)) continue;
          expected.push_back(fmt::format("/ {} {}", i, j));
          add({"load K", "load V", "scores", "mask", "online_softmax", "rescale", "accumulate", "discard"});
        }
        add({"finish", "store O", "store L"});
      }
      continue;
    }
    for (std::int64_t i = 0; i < query_tiles; ++i) add({"initialise O", "initialise l", "initialise m"});
    for (std::int64_t j = 0; j < key_tiles; ++j) {
      bool loaded = false;
      for (std::int64_t i = 0; i < query_tiles; ++i) {
        if (!visited(p, scenario.tiling, i, j)) continue;
        expected.push_back(fmt::format("/ {} {}", i, j));
        if (!loaded) add({"load K", "load V"});
        loaded = true;
        add({"load Q", "load O", "load l", "load m", "scores", "mask", "online_softmax", "rescale",
             "accumulate", "finish", "store O", "store l", "store m", "discard"});
      }
    }
  }
  return expected;
}

std::vector<std::string> words_of(const Recording& recording) {
  std::vector<std::string> all;
  std::pair<std::int64_t, std::int64_t> pair{-1, -1};
  for (const Frame& frame : recording.frames) {
    const std::pair now{frame.step.query_tile, frame.step.key_tile};
    if (frame.step.key_tile >= 0 && (now != pair || all.back() == "discard")) {
      all.push_back(fmt::format("/ {} {}", now.first, now.second));
    }
    pair = now;
    all.push_back(words(frame));
  }
  return all;
}

TEST_CASE("the eight operations appear, in order, for every pair of tiles that is visited") {
  std::size_t pairs = 0;
  for (const Scenario& scenario : random_scenarios(20, 1)) {
    for (const Algorithm algorithm : kTiled) {
      INFO(facts_of(algorithm).name << ": " << scenario.title);
      const std::vector<std::string> expected = expected_words(algorithm, scenario);
      CHECK(words_of(replayed(scenario, algorithm).tiled) == expected);
      pairs += static_cast<std::size_t>(std::count(expected.begin(), expected.end(), "mask"));
    }
  }
  CHECK(pairs > 500);
}

TEST_CASE("every frame shows what its step leaves, in the shape of its tile") {
  std::map<Operation, std::vector<ChipValue>> shown{
      {Operation::reset, {ChipValue::m, ChipValue::l, ChipValue::O}},
      {Operation::scores, {ChipValue::S}},
      {Operation::mask, {ChipValue::S}},
      {Operation::softmax, {ChipValue::P}},
      {Operation::online_softmax, {ChipValue::m_before, ChipValue::m, ChipValue::P, ChipValue::row_sum}},
      {Operation::rescale,
       {ChipValue::r, ChipValue::l_before, ChipValue::row_sum, ChipValue::l, ChipValue::O}},
      {Operation::accumulate, {ChipValue::O}},
      {Operation::finish, {ChipValue::O, ChipValue::l, ChipValue::L}},
      {Operation::discard, {}},
      {Operation::initialise, {}}};
  for (const Scenario& scenario : random_scenarios(8, 50)) {
    INFO(scenario.title);
    std::string wrong;
    for (const Algorithm algorithm : kTiled) {
      const ReplayReport report = replayed(scenario, algorithm);
      for (const Recording* recording : {&report.tiled, &report.standard}) {
        for (const Frame& frame : recording->frames) {
          std::vector<ChipValue> names;
          for (const auto& [name, matrix] : frame.values) {
            names.push_back(name);
            const bool key_rows = name == ChipValue::K || name == ChipValue::V;
            const bool key_columns = name == ChipValue::S || name == ChipValue::P;
            const bool column = name >= ChipValue::m_before;
            const std::int64_t rows = key_rows ? frame.step.keys.size() : frame.step.rows.size();
            const std::int64_t columns = column        ? 1
                                         : key_columns ? frame.step.keys.size()
                                                       : scenario.problem.head_dim;
            if (matrix.rows != rows || matrix.columns != columns ||
                matrix.numbers.size() != static_cast<std::size_t>(rows * columns)) {
              wrong = fmt::format("{} after {}", name_of(name), words(frame));
            }
          }
          const auto expected = shown.find(frame.step.operation);
          const bool right = expected != shown.end()
                                 ? names == expected->second
                                 : names.size() == 1 && name_of(names[0]) == name_of(frame.step.operand);
          if (!right) wrong = words(frame);
        }
      }
    }
    CHECK(wrong == "");
  }
}

/// Follows the frames of flash2 and computes each from the ones before: what the first that differs is.
std::string first_contradiction(const ReplayReport& report, const Inputs<double>& inputs) {
  const Problem& p = report.scenario.problem;
  NumberMatrix q, k, v, s, weights, o;
  Numbers m, l;
  constexpr double kSlack = 1e-13;
  const auto is_near = [&](double a, double b) {
    return a == b || std::fabs(a - b) <= kSlack * (1 + std::fabs(b));
  };
  for (const Frame& frame : report.tiled.frames) {
    const Step& step = frame.step;
    const std::string where = fmt::format("{} on {} {}", words(frame), step.query_tile, step.key_tile);
    const auto value = [&](ChipValue name) { return *frame.find(name); };
    const std::int64_t kv = frame.head * p.kv_heads / p.heads;
    const auto equals = [&](const NumberMatrix& tile, MatrixView<const double> whole, std::int64_t begin) {
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        for (std::int64_t x = 0; x < tile.columns; ++x) {
          if (tile.at(r, x) != whole(begin + r, x)) return false;
        }
      }
      return true;
    };
    switch (step.operation) {
      case Operation::load:
        if (step.operand == Operand::Q) q = value(ChipValue::Q);
        if (step.operand == Operand::K) k = value(ChipValue::K);
        if (step.operand == Operand::V) v = value(ChipValue::V);
        if (step.operand == Operand::Q &&
            !equals(q, inputs.q.matrix(frame.batch, frame.head), step.rows.begin))
          return where;
        if (step.operand == Operand::K && !equals(k, inputs.k.matrix(frame.batch, kv), step.keys.begin))
          return where;
        if (step.operand == Operand::V && !equals(v, inputs.v.matrix(frame.batch, kv), step.keys.begin))
          return where;
        break;
      case Operation::reset:
        m = value(ChipValue::m).numbers;
        l = value(ChipValue::l).numbers;
        o = value(ChipValue::O);
        for (std::size_t r = 0; r < m.size(); ++r) {
          if (m[r] != -kInfinity || l[r] != 0) return where;
        }
        if (std::any_of(o.numbers.begin(), o.numbers.end(), [](double each) { return each != 0; }))
          return where;
        break;
      case Operation::scores:
        s = value(ChipValue::S);
        for (std::int64_t r = 0; r < s.rows; ++r) {
          for (std::int64_t c = 0; c < s.columns; ++c) {
            double dot = 0;
            for (std::int64_t x = 0; x < p.head_dim; ++x) dot += q.at(r, x) * k.at(c, x);
            if (!is_near(s.at(r, c), dot * p.score_scale())) return where;
          }
        }
        break;
      case Operation::mask: {
        const NumberMatrix masked = value(ChipValue::S);
        bool idle = true;
        for (std::int64_t r = 0; r < s.rows; ++r) {
          for (std::int64_t c = 0; c < s.columns; ++c) {
            const bool seen = test::visible(p, step.rows.begin + r, step.keys.begin + c);
            idle = idle && seen;
            if (masked.at(r, c) != (seen ? s.at(r, c) : -kInfinity)) return where;
          }
        }
        if (step.idle != idle) return where + " (idle)";
        s = masked;
        break;
      }
      case Operation::online_softmax: {
        if (value(ChipValue::m_before).numbers != m) return where + " (m before)";
        const Numbers now = value(ChipValue::m).numbers;
        weights = value(ChipValue::P);
        for (std::int64_t r = 0; r < s.rows; ++r) {
          double largest = m[static_cast<std::size_t>(r)], sum = 0;
          for (std::int64_t c = 0; c < s.columns; ++c) largest = std::max(largest, s.at(r, c));
          if (now[static_cast<std::size_t>(r)] != largest) return where + " (m)";
          for (std::int64_t c = 0; c < s.columns; ++c) {
            const double p_rc = s.at(r, c) == -kInfinity ? 0 : std::exp(s.at(r, c) - largest);
            if (!is_near(weights.at(r, c), p_rc)) return where + " (P)";
            sum += weights.at(r, c);
          }
          if (!is_near(value(ChipValue::row_sum).at(r, 0), sum)) return where + " (sum)";
        }
        break;
      }
      case Operation::rescale:
        if (value(ChipValue::l_before).numbers != l) return where + " (l before)";
        for (std::int64_t r = 0; r < o.rows; ++r) {
          const auto at = static_cast<std::size_t>(r);
          double largest = m[at], sum = 0;
          for (std::int64_t c = 0; c < s.columns; ++c) {
            largest = std::max(largest, s.at(r, c));
            sum += weights.at(r, c);
          }
          const double factor = m[at] == -kInfinity ? 0 : std::exp(m[at] - largest);
          if (!is_near(value(ChipValue::r).at(r, 0), factor)) return where + " (r)";
          if (!is_near(value(ChipValue::l).at(r, 0), factor * l[at] + sum)) return where + " (l)";
          for (std::int64_t x = 0; x < o.columns; ++x) {
            if (!is_near(value(ChipValue::O).at(r, x), factor * o.at(r, x))) return where + " (O)";
          }
          m[at] = largest;
        }
        l = value(ChipValue::l).numbers;
        o = value(ChipValue::O);
        break;
      case Operation::accumulate: {
        const NumberMatrix now = value(ChipValue::O);
        for (std::int64_t r = 0; r < o.rows; ++r) {
          for (std::int64_t x = 0; x < o.columns; ++x) {
            double sum = o.at(r, x);
            for (std::int64_t c = 0; c < weights.columns; ++c) sum += weights.at(r, c) * v.at(c, x);
            if (!is_near(now.at(r, x), sum)) return where;
          }
        }
        o = now;
        break;
      }
      case Operation::finish:
        for (std::int64_t r = 0; r < o.rows; ++r) {
          const auto at = static_cast<std::size_t>(r);
          const bool empty = m[at] == -kInfinity;
          if (!is_near(value(ChipValue::L).at(r, 0), empty ? -kInfinity : m[at] + std::log(l[at])))
            return where + " (L)";
          for (std::int64_t x = 0; x < o.columns; ++x) {
            if (!is_near(value(ChipValue::O).at(r, x), empty ? 0 : o.at(r, x) / l[at])) return where + " (O)";
          }
        }
        o = value(ChipValue::O);
        break;
      case Operation::store:
        if (step.operand == Operand::O && value(ChipValue::O).numbers != o.numbers) return where;
        if (step.operand == Operand::O &&
            !equals(o, report.tiled.outputs.o.matrix(frame.batch, frame.head), step.rows.begin)) {
          return where + " (output)";
        }
        break;
      default: break;
    }
  }
  return "";
}

TEST_CASE("each frame follows from the frames before it, and the last are the output") {
  int masked = 0;
  for (Scenario scenario : random_scenarios(20, 300)) {
    INFO(scenario.title);
    scenario.problem.storage = NumberType::fp64;
    const ReplayReport report = replayed(scenario, Algorithm::flash2);
    CHECK(first_contradiction(report, scenario.tensors()) == "");
    CHECK(report.verdict == Verdict::right);
    masked += scenario.problem.causal ? 1 : 0;
  }
  CHECK(masked > 5);
}

TEST_CASE("what the frames moved adds up to the account, tensor by tensor") {
  for (const Scenario& scenario : random_scenarios(20, 700)) {
    for (const Algorithm algorithm : kTiled) {
      const ReplayReport report = replayed(scenario, algorithm);
      for (const Recording* recording : {&report.tiled, &report.standard}) {
        INFO(facts_of(recording->algorithm).name << ": " << scenario.title);
        Tally moved;
        for (const Frame& frame : recording->frames) {
          Flow& flow = frame.step.operation == Operation::initialise ? moved.initial_of(frame.step.operand)
                                                                     : moved.hbm_of(frame.step.operand);
          flow += {frame.hbm_read, frame.hbm_written};
        }
        const Tally account = predict(recording->algorithm, scenario.problem, scenario.tiling).tally;
        for (const Operand operand : kOperands) {
          INFO(name_of(operand));
          CHECK(moved.hbm_of(operand).read == account.hbm_of(operand).read);
          CHECK(moved.hbm_of(operand).written == account.hbm_of(operand).written);
          CHECK(moved.initial_of(operand).written == account.initial_of(operand).written);
        }
        CHECK(moved.hbm_total().total() == account.hbm_total().total());
        CHECK(account.hbm_total().total() > Bytes(0));
      }
    }
  }
}

TEST_CASE("computing in the other type moves its bytes") {
  const auto bytes = [](NumberType compute) {
    Bytes sum;
    for (const Frame& frame : replayed({.scenario = "three-token", .compute = compute}).tiled.frames) {
      sum += frame.hbm_read + frame.hbm_written;
    }
    return sum;
  };
  // Q 6, K and V 2·(4 + 4 + 6), O 6 and L 3 elements, every query row a tile.
  CHECK(bytes(NumberType::fp32) == Bytes(4 * (6 + 28 + 6 + 3)));
  CHECK(bytes(NumberType::fp64) == Bytes(8 * (6 + 28 + 6 + 3)));
}

TEST_CASE("one row alone is that row of the whole replay") {
  for (const Scenario& scenario : random_scenarios(10, 900)) {
    for (const Algorithm algorithm : kTiled) {
      const ReplayReport whole = replayed(scenario, algorithm);
      for (const std::int64_t row : {std::int64_t{0}, scenario.problem.seq / 2, scenario.problem.seq - 1}) {
        INFO(facts_of(algorithm).name << ", row " << row << ": " << scenario.title);
        const ReplayReport one = replayed(scenario, algorithm, row);
        CHECK(one.row == row);
        CHECK(one.tiled.outputs.o.data() == whole.tiled.outputs.o.data());
        for (const auto& [narrow, wide] :
             {std::pair{&one.tiled, &whole.tiled}, {&one.standard, &whole.standard}}) {
          std::size_t at = 0;
          std::string wrong;
          for (const Frame& frame : wide->frames) {
            if (row < frame.step.rows.begin || row >= frame.step.rows.end) continue;
            if (at == narrow->frames.size()) {
              wrong = "a frame is missing: " + words(frame);
              break;
            }
            const Frame& same = narrow->frames[at++];
            if (words(same) != words(frame) || same.batch != frame.batch || same.head != frame.head ||
                same.step.key_tile != frame.step.key_tile || same.step.rows.begin != row ||
                same.step.rows.end != row + 1 || same.values.size() != frame.values.size()) {
              wrong = words(frame);
              break;
            }
            for (std::size_t n = 0; n < frame.values.size(); ++n) {
              const auto& [name, matrix] = frame.values[n];
              const auto& [same_name, same_matrix] = same.values[n];
              const bool query_rows = name != ChipValue::K && name != ChipValue::V;
              const auto first =
                  matrix.numbers.begin() + (query_rows ? (row - frame.step.rows.begin) * matrix.columns : 0);
              const Numbers expected(first, query_rows ? first + matrix.columns : matrix.numbers.end());
              const std::int64_t rows = query_rows ? 1 : matrix.rows;
              if (same_name != name || same_matrix.numbers != expected || same_matrix.rows != rows ||
                  same_matrix.columns != matrix.columns) {
                wrong = fmt::format("{} after {}", name_of(name), words(frame));
              }
            }
          }
          CHECK(wrong == "");
          CHECK(at == narrow->frames.size());
        }
      }
    }
  }
}

TEST_CASE("a row that isn't there is refused") {
  CHECK(message_of(make_replay({.scenario = "three-token", .row = 3})) ==
        "--row must be a whole number from 0 to 2, not 3");
  CHECK(message_of(make_replay({.scenario = "three-token", .row = -1})) ==
        "--row must be a whole number from 0 to 2, not -1");
  CHECK(message_of(make_replay({.scenario = "max-changes", .row = 1})) ==
        "--row must be a whole number from 0 to 0, not 1");
  CHECK(message_of(make_replay({.scenario = "three-token", .row = 2})) == kNoError);
}

TEST_CASE("a scenario that isn't there is refused with the nearest name") {
  CHECK(message_of(make_replay({.scenario = "three-tokens"})) == "unknown scenario 'three-tokens'");
  CHECK(test::hint_of(make_replay({.scenario = "three-tokens"})) ==
        "did you mean 'three-token'? known: break-it, max-changes, three-token");
}

std::string random_text(std::int64_t seq, std::int64_t head_dim, std::int64_t query_rows,
                        std::int64_t key_rows) {
  return fmt::format(
      R"({{"schema": "flashsim.scenario/1", "problem": {{"seq": {}, "head_dim": {}, "causal": false}},
    "tensors": {{"random": {{"seed": 1}}}}, "tiling": {{"query_rows": {}, "key_rows": {}}}}})",
      seq, head_dim, query_rows, key_rows);
}

TEST_CASE("a score matrix too large for a replay is refused before anything is computed") {
  // 1448² scores are just below 2²¹; one row of them is little to record.
  CHECK(test::replay_text(random_text(1448, 1, 128, 64), {.row = 0}).ok());
  const auto report = test::replay_text(random_text(1449, 1, 128, 64), {.row = 0});
  CHECK(message_of(report) ==
        "big.json is too large to replay step by step (B 1 · H 1 · N 1449 · d 1, tiles 128×64)");
}

TEST_CASE("the advice for a scenario that is too large makes it small enough") {
  // N² scores alone are beyond the limit: neither larger tiles nor one row alone change them.
  const std::string text = random_text(1449, 1, 128, 64);
  const bool one_row_works = test::replay_text(text, {.row = 0}).ok();
  const bool larger_tiles_work = test::replay_text(text, {.tiles = {2000, 2000}}).ok();
  const std::string hint = test::hint_of(test::replay_text(text));
  CHECK((hint.find("--row") != std::string::npos) == one_row_works);
  CHECK((hint.find("tiles") != std::string::npos) == larger_tiles_work);
}

TEST_CASE("frames that hold too many numbers are refused, and fewer rows or larger tiles are the way out") {
  const std::string text = random_text(64, 1500, 1, 1);
  const auto report = test::replay_text(text);
  CHECK(message_of(report) ==
        "big.json is too large to replay step by step (B 1 · H 1 · N 64 · d 1500, tiles 1×1)");
  CHECK(test::hint_of(report) ==
        "make the sequence shorter or the tiles larger, or replay one row with --row");
  CHECK(test::replay_text(text, {.row = 63}).ok());
  CHECK(test::replay_text(text, {.tiles = {64, 64}}).ok());
}

/// A chip of 3 rows, 2 keys and a head dimension of 4 that holds nothing but zeros.
class EmptyChip : public ChipValues {
 public:
  [[nodiscard]] NumberMatrix read(ChipValue) const override {
    return {.rows = 3, .columns = 4, .numbers = Numbers(12)};
  }
};

TEST_CASE("the recorder keeps no frame beyond its limit, and says so") {
  const Problem problem{.seq = 3, .kv_seq = 2, .head_dim = 4};
  const Step step{.operation = Operation::accumulate, .rows = {0, 3}, .keys = {0, 2}};
  Recorder exact(problem, std::nullopt, 24);
  for (int i = 0; i < 2; ++i) exact.executed(step, EmptyChip());
  CHECK_FALSE(exact.overflowed());
  CHECK(exact.frames().size() == 2);
  for (int i = 0; i < 5; ++i) exact.executed(step, EmptyChip());
  CHECK(exact.overflowed());
  CHECK(exact.frames().size() == 3);
  // One row of each is a third of it.
  Recorder one(problem, 1, 24);
  for (int i = 0; i < 6; ++i) one.executed(step, EmptyChip());
  CHECK_FALSE(one.overflowed());
  CHECK(one.take_frames().size() == 6);
}

TEST_CASE("the recorder names the head and what a load, a repeated load and a store moved") {
  const Problem problem{.seq = 3, .kv_seq = 2, .head_dim = 4, .storage = NumberType::fp16};
  Recorder recorder(problem, std::nullopt, 1000);
  recorder.begin_head(2, 5);
  Step load{.operation = Operation::load, .operand = Operand::K, .rows = {0, 3}, .keys = {0, 2}};
  recorder.executed(load, EmptyChip());
  load.again = true;
  recorder.executed(load, EmptyChip());
  recorder.executed({.operation = Operation::store, .operand = Operand::L, .rows = {0, 3}, .keys = {0, 2}},
                    EmptyChip());
  const auto& frames = recorder.frames();
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].batch == 2);
  CHECK(frames[0].head == 5);
  CHECK(frames[0].hbm_read == Bytes(2 * 4 * 2));
  CHECK(frames[0].hbm_written == Bytes(0));
  CHECK(frames[1].hbm_read == Bytes(0));
  CHECK(frames[2].hbm_written == Bytes(3 * 4));
  CHECK(frames[2].find(ChipValue::L) != nullptr);
  CHECK(frames[2].find(ChipValue::K) == nullptr);
}

}  // namespace
}  // namespace flashsim
