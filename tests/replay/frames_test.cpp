// The frames of any scenario, held against the account, the algorithm and each other.
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
#include "tests/replay/frame_lookup.hpp"
#include "tests/replay/replays.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::after;
using test::kTiled;
using test::near;
using test::Numbers;
using test::replayed;
using test::replayed_text;
using test::same_frames;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
        if (!loaded) {
          // Key tile j is loaded for all query tiles.
          expected.push_back(fmt::format("/ -1 {}", j));
          add({"load K", "load V"});
          loaded = true;
        }
        expected.push_back(fmt::format("/ {} {}", i, j));
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

}  // namespace
}  // namespace flashsim
