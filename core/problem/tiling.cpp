#include "core/problem/tiling.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// Halves the sizes that may change, Bc then Br in turn, until the tiles fit or are one row each.
Tiling shrink_to_fit(const Problem& problem, Tiling tiling, Bytes limit, bool query_rows_may,
                     bool key_rows_may) {
  bool keys_next = true;
  while (!fits(problem, tiling, limit)) {
    const bool keys_can = key_rows_may && tiling.key_rows > 1;
    const bool queries_can = query_rows_may && tiling.query_rows > 1;
    if (!keys_can && !queries_can) break;
    if (keys_can && (keys_next || !queries_can)) {
      tiling.key_rows /= 2;
    } else {
      tiling.query_rows /= 2;
    }
    keys_next = !keys_next;
  }
  return tiling;
}

Error does_not_fit(const Problem& problem, Tiling tiling, Bytes limit, const std::string& limit_name) {
  const Tiling smaller = shrink_to_fit(problem, tiling, limit, true, true);
  const Bytes smallest = tile_footprint(problem, smaller);
  return {
      fmt::format("tiles {} need {} B of shared memory for Q, K and V, and {} is {} B", tiling_text(tiling),
                  tile_footprint(problem, tiling).value(), limit_name, limit.value()),
      fits(problem, smaller, limit)
          ? fmt::format("tiles {} fit, with {} B", tiling_text(smaller), smallest.value())
          : fmt::format("not even tiles of one row fit: they need {} B", smallest.value())};
}

}  // namespace

std::string tiling_text(Tiling tiling) { return fmt::format("{}×{}", tiling.query_rows, tiling.key_rows); }

Bytes tile_footprint(const Problem& problem, Tiling tiling) {
  const Count rows = Count(tiling.query_rows) + Count(2) * tiling.key_rows;
  return Bytes(rows * problem.head_dim * size_of(problem.storage));
}

bool fits(const Problem& problem, Tiling tiling, Bytes shared_memory) {
  const Bytes needed = tile_footprint(problem, tiling);
  return !needed.overflowed() && needed <= shared_memory;
}

Tiling paper_tiling(const Problem& problem, Bytes shared_memory) {
  const std::int64_t elements = shared_memory.value() / size_of(problem.storage);
  const std::int64_t quarter = std::max<std::int64_t>(1, (elements - 1) / (4 * problem.head_dim) + 1);
  return {.query_rows = std::min(quarter, problem.head_dim), .key_rows = quarter};
}

Tiling packed_tiling(const Problem& problem) {
  Tiling tiling;
  const Count rows = Count(problem.seq) * (problem.heads / problem.kv_heads);
  while (tiling.query_rows > 16 && Count(tiling.query_rows / 2) >= rows) tiling.query_rows /= 2;
  return tiling;
}

Result<Tiling> resolve_tiling(Algorithm algorithm, const Problem& problem, TilingRequest request,
                              Bytes shared_memory, const std::string& limit_name) {
  if (algorithm == Algorithm::memory_efficient) {
    return Tiling{.query_rows = request.query_rows.value_or(std::min(kChunks.query_rows, problem.seq)),
                  .key_rows = request.key_rows.value_or(std::min(kChunks.key_rows, problem.kv_seq))};
  }
  Tiling tiling;
  if (algorithm == Algorithm::flash1) tiling = paper_tiling(problem, shared_memory);
  if (algorithm == Algorithm::split_kv) tiling = packed_tiling(problem);
  tiling.query_rows = request.query_rows.value_or(tiling.query_rows);
  tiling.key_rows = request.key_rows.value_or(tiling.key_rows);
  tiling = shrink_to_fit(problem, tiling, shared_memory, !request.query_rows, !request.key_rows);
  if (facts_of(algorithm).tiled && !fits(problem, tiling, shared_memory)) {
    if (!request.query_rows && !request.key_rows) {
      return Error{
          fmt::format("no tiles fit: one row each of Q, K and V needs {} B of shared memory, and {} is {} B",
                      tile_footprint(problem, tiling).value(), limit_name, shared_memory.value()),
          ""};
    }
    return does_not_fit(problem, tiling, shared_memory, limit_name);
  }
  return tiling;
}

}  // namespace flashsim
