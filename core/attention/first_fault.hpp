// Where a wrong row first went wrong: its query tile is executed once more, and after every key tile the
// running state, O/l and m + ln l, is held against the truth over the keys seen so far.
#pragma once

#include <cstdint>
#include <optional>

#include "core/attention/switches.hpp"
#include "core/attention/tensors.hpp"
#include "core/attention/verification.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

struct FirstFault {
  RowPlace place;
  std::int64_t query_tile = 0;
  /// The key tile after which the state was wrong. Absent where there is no running state (standard,
  /// eager), and where it was right after every key tile and the result isn't.
  std::optional<std::int64_t> key_tile;
  std::optional<std::int64_t> column;  ///< of O; absent: it is L that is wrong
  double got = 0;
  double expected = 0;   ///< the truth over the keys seen so far
  double tolerance = 0;  ///< what it may be off by
};

/// The first fault of the first wrong row that `verification` found; none where it found none.
template <class T>
std::optional<FirstFault> first_fault(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                      const Switches& switches, const Inputs<T>& inputs,
                                      const Verification& verification);

}  // namespace flashsim
