// The causal mask. Every query sees a prefix of the keys, so one number a row says it all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem/problem.hpp"

namespace flashsim {

/// The number of keys on or before the diagonal of query `row`, were there any number of them: where the
/// causal rule alone ends, 0 or more.
constexpr std::int64_t diagonal(const Problem& problem, std::int64_t row) {
  const std::int64_t offset =
      problem.alignment == CausalAlignment::bottom_right ? problem.kv_seq - problem.seq : 0;
  return std::max<std::int64_t>(row + offset + 1, 0);
}

/// The number of keys that query `row` sees: keys 0 … n−1 are visible, the rest are masked. 0 where
/// the row is empty.
constexpr std::int64_t visible_keys(const Problem& problem, std::int64_t row) {
  return problem.causal ? std::min(diagonal(problem, row), problem.kv_seq) : problem.kv_seq;
}

/// The first query that sees `key`; all after it do too. N where none does.
constexpr std::int64_t first_query_seeing(const Problem& problem, std::int64_t key) {
  if (!problem.causal) return 0;
  const std::int64_t offset =
      problem.alignment == CausalAlignment::bottom_right ? problem.kv_seq - problem.seq : 0;
  return std::clamp<std::int64_t>(key - offset, 0, problem.seq);
}

}  // namespace flashsim
