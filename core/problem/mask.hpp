// The causal mask. Every query sees a prefix of the keys, so one number a row says it all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem/problem.hpp"

namespace flashsim {

/// The position among the keys that query 0 has.
constexpr std::int64_t position_of_first_query(const Problem& problem) {
  return problem.alignment == CausalAlignment::bottom_right
             ? problem.kv_seq - problem.seq / problem.rows_per_query
             : 0;
}

/// The number of keys on or before the diagonal of `row` of the queries, were there any number of them: where
/// the causal rule alone ends, 0 or more.
constexpr std::int64_t diagonal(const Problem& problem, std::int64_t row) {
  return std::max<std::int64_t>(row / problem.rows_per_query + position_of_first_query(problem) + 1, 0);
}

/// The number of keys that query `row` sees: keys 0 … n−1 are visible, the rest are masked. 0 where
/// the row is empty.
constexpr std::int64_t visible_keys(const Problem& problem, std::int64_t row) {
  return problem.causal ? std::min(diagonal(problem, row), problem.kv_seq) : problem.kv_seq;
}

/// The first row of the queries that sees `key`; all after it do too. All of them where none does.
constexpr std::int64_t first_query_seeing(const Problem& problem, std::int64_t key) {
  if (!problem.causal) return 0;
  const std::int64_t queries = problem.seq / problem.rows_per_query;
  return std::clamp<std::int64_t>(key - position_of_first_query(problem), 0, queries) *
         problem.rows_per_query;
}

}  // namespace flashsim
