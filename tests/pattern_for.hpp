// A pattern where an algorithm needs one: tests that take every algorithm give it this.
#pragma once

#include <optional>

#include "core/problem/algorithm.hpp"
#include "core/problem/block_pattern.hpp"

namespace flashsim::test {

inline std::optional<PatternRequest> pattern_for(Algorithm algorithm) {
  if (algorithm != Algorithm::block_sparse) return std::nullopt;
  return PatternRequest{.kind = PatternKind::window, .size = 3};
}

}  // namespace flashsim::test
