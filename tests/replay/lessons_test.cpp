// The built-in scenarios, checked against what one computes by hand.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/study/replay.hpp"
#include "tests/catch.hpp"
#include "tests/replay/frame_lookup.hpp"
#include "tests/replay/replays.hpp"

namespace flashsim {
namespace {

using test::after;
using test::kTiled;
using test::near;
using test::Numbers;
using test::replayed;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
  CHECK(broken.standard.agrees());
}

ReplayRequest break_it(std::int64_t width, double magnitude, NumberType compute, Algorithm algorithm) {
  return {.scenario = "break-it",
          .algorithm = algorithm,
          .compute = compute,
          .tiles = {.key_rows = width},
          .magnitude = magnitude};
}

constexpr std::array kComputed{NumberType::fp32, NumberType::fp64};

TEST_CASE("break it: no tile width changes the result, at any magnitude") {
  for (const Algorithm algorithm : kTiled) {
    for (const NumberType compute : kComputed) {
      for (const double magnitude : {1.0, 3.0, 10.0, 25.0, 40.0}) {
        for (const std::int64_t width : {1, 2, 3, 4, 8}) {
          INFO(width << " keys at magnitude " << magnitude);
          const ReplayReport report = replayed(break_it(width, magnitude, compute, algorithm));
          CHECK(report.verdict == Verdict::right);
          CHECK(report.tiled.output_error.max_abs.size < 1e-4);
          CHECK(report.truth.magnitudes.score == 3 * magnitude);
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
          CHECK((report.tiled.output_error.max_abs.size > 0.1) == (width < 6));
          CHECK(report.standard.agrees());
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
          CHECK(std::isnan(large.tiled.output_error.max_abs.size));
        }
        const std::int64_t last = (8 + width - 1) / width - 1;
        if (algorithm == Algorithm::flash2) {
          CHECK(after(large.tiled, Operation::online_softmax, 0, last, ChipValue::m) == Numbers{0});
        }
      }
    }
  }
}

}  // namespace
}  // namespace flashsim
