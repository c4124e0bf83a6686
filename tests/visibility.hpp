// The causal mask spelled out for one (query, key) pair, with none of core's code.
#pragma once

#include <cstdint>

#include "core/problem/problem.hpp"

namespace flashsim::test {

/// Query `row` sees `key`. Bottom-right: key ≤ row + Nkv − N; top-left: key ≤ row.
inline bool visible(const Problem& problem, std::int64_t row, std::int64_t key) {
  if (!problem.causal) return true;
  if (problem.alignment == CausalAlignment::top_left) return key <= row;
  return key <= row + problem.kv_seq - problem.seq;
}

}  // namespace flashsim::test
