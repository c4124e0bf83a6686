// Which rows of a result are held against the truth. The truth of a large problem takes as long as the
// problem itself, without its vector code; so where a budget is exceeded some rows stand for all, always
// the same ones.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

class BlockPattern;

/// One row of a tensor [B, H, N, ·].
struct RowPlace {
  std::int64_t batch = 0, head = 0, row = 0;
  friend auto operator<=>(const RowPlace&, const RowPlace&) = default;
};

/// Rows of a tensor, each once, in ascending order.
struct RowSample {
  std::vector<RowPlace> rows;
  std::int64_t of = 0;  ///< rows that the tensor has
  /// Which rows these are, where they aren't all; and why there is none, where there is none.
  std::string note;
  [[nodiscard]] bool whole() const { return static_cast<std::int64_t>(rows.size()) == of; }
};

/// All B · H · N query rows.
RowSample all_query_rows(const Problem& problem);
/// All B · Hkv · Nkv key rows.
RowSample all_key_rows(const Problem& problem);

/// Query rows whose truth takes at most `products`, counted as visible (query, key) pairs × d: all of them
/// where they fit; else the first and the last rows of the first and the last head, whatever they take, the
/// rows at the edges of their first and last query tiles, and a spread over all.
/// Pairs that `pattern` hides cost nothing.
RowSample sample_query_rows(const Problem& problem, Tiling tiling, double products,
                            const BlockPattern* pattern = nullptr);

/// Keys whose dK and dV take at most `products`, counted alike. The gradients of a key need L and D of
/// every query that sees it. So: all keys where they fit; else, where the mask is causal, the last keys
/// of the first and the last key/value head, which few queries see; else the first key/value head alone,
/// some of its keys; else none, and the note says so.
RowSample sample_key_rows(const Problem& problem, double products);

}  // namespace flashsim
