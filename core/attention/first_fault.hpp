// Where a wrong row first went wrong: its query tile is executed once more, and after every key tile the
// running state, O/l and m + ln l, is held against the truth over the keys seen so far.
#pragma once

#include <cstdint>
#include <optional>

#include "core/attention/tensors.hpp"
#include "core/attention/verification.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"

namespace flashsim {

struct FirstFault {
  RowPlace place;
  std::int64_t query_tile = 0;  ///< of the packed rows where heads are packed
  /// The key tile after which the state was wrong. Absent where there is no running state (standard,
  /// eager), and where it was right after every key tile and the result isn't.
  std::optional<std::int64_t> key_tile;
  std::optional<std::int64_t> column;  ///< of O; absent: it is L that is wrong
  double got = 0;
  double expected =
      0;  ///< the truth over the keys seen so far; in a part of the keys, over those of the part
  double tolerance = 0;  ///< what it may be off by
};

/// The first fault of the first wrong row that `verification` found; none where it found none.
template <class T>
std::optional<FirstFault> first_fault(const Problem& problem, const Method& method, const Switches& switches,
                                      const Inputs<T>& inputs, const Verification& verification);

/// The same of an algorithm that has nothing to choose but its tiles.
template <class T>
std::optional<FirstFault> first_fault(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                      const Switches& switches, const Inputs<T>& inputs,
                                      const Verification& verification) {
  return first_fault<T>(problem, Method{.algorithm = algorithm, .tiling = tiling}, switches, inputs,
                        verification);
}

}  // namespace flashsim
