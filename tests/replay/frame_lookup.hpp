// Finding what a replay recorded.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "core/study/replay.hpp"
#include "tests/catch.hpp"

namespace flashsim::test {

using Numbers = std::vector<double>;

inline constexpr std::array kTiled{Algorithm::flash1, Algorithm::flash2};

/// The frame of `operation` on a pair of tiles. Steps on whole rows have no key tile: −1.
inline const Frame& frame_of(const Recording& recording, Operation operation, std::int64_t query_tile,
                             std::int64_t key_tile) {
  for (const Frame& frame : recording.frames) {
    const Step& step = frame.step;
    if (step.operation == operation && step.query_tile == query_tile && step.key_tile == key_tile)
      return frame;
  }
  FAIL("no " << name_of(operation) << " on " << query_tile << ", " << key_tile);
  return recording.frames.front();
}

inline Numbers numbers_in(const Frame& frame, ChipValue value) {
  const NumberMatrix* matrix = frame.find(value);
  if (matrix == nullptr) FAIL("no " << name_of(value) << " after " << name_of(frame.step.operation));
  return matrix->numbers;
}

/// The value on the chip after that step.
inline Numbers after(const Recording& recording, Operation operation, std::int64_t query_tile,
                     std::int64_t key_tile, ChipValue value) {
  return numbers_in(frame_of(recording, operation, query_tile, key_tile), value);
}

inline bool near(const Numbers& got, const Numbers& expected, double tolerance) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool equal = got[i] == expected[i] || std::fabs(got[i] - expected[i]) <= tolerance;
    if (!equal) return false;
  }
  return true;
}

}  // namespace flashsim::test
