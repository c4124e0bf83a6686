// The causal mask spelled out for one (query, key) pair, and the tile pairs that hold such, with none of
// core's code.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim::test {

/// Query `row` sees `key`. Bottom-right: key ≤ row + Nkv − N; top-left: key ≤ row.
inline bool visible(const Problem& problem, std::int64_t row, std::int64_t key) {
  if (!problem.causal) return true;
  if (problem.alignment == CausalAlignment::top_left) return key <= row;
  return key <= row + problem.kv_seq - problem.seq;
}

/// The tile pairs that hold at least one visible pair.
inline std::set<std::pair<std::int64_t, std::int64_t>> visible_tiles(const Problem& p, Tiling t) {
  std::set<std::pair<std::int64_t, std::int64_t>> found;
  for (std::int64_t row = 0; row < p.seq; ++row) {
    for (std::int64_t key = 0; key < p.kv_seq; ++key) {
      if (visible(p, row, key)) found.insert({row / t.query_rows, key / t.key_rows});
    }
  }
  return found;
}

}  // namespace flashsim::test
