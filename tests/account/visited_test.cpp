// The sums of the closed forms, against the mask spelled out pair by pair.
#include "core/account/closed_form/visited.hpp"

#include <algorithm>
#include <chrono>

#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

/// Sums over tile pairs as plain integers.
struct Sums {
  std::int64_t pairs = 0, rows = 0, keys = 0, entries = 0;
  void add(std::int64_t tile_rows, std::int64_t tile_keys) {
    pairs += 1;
    rows += tile_rows;
    keys += tile_keys;
    entries += tile_rows * tile_keys;
  }
};

bool same(const PairSums& closed, const Sums& looped) {
  return closed.pairs == Count(looped.pairs) && closed.rows == Count(looped.rows) &&
         closed.keys == Count(looped.keys) && closed.entries == Count(looped.entries);
}

void check_sums(const Problem& p, Tiling t) {
  Sums all, visited, masked, masked_all;
  std::int64_t query_tiles = 0, key_tiles = 0, keys_reached = 0, tiles_reached = 0, visible_entries = 0;
  for (std::int64_t key = 0; key < p.kv_seq; key += t.key_rows) {
    const std::int64_t keys = std::min(t.key_rows, p.kv_seq - key);
    ++key_tiles;
    query_tiles = 0;
    bool reached = false;
    for (std::int64_t row = 0; row < p.seq; row += t.query_rows) {
      const std::int64_t rows = std::min(t.query_rows, p.seq - row);
      ++query_tiles;
      std::int64_t seen = 0;
      for (std::int64_t r = row; r < row + rows; ++r) {
        for (std::int64_t k = key; k < key + keys; ++k) seen += test::visible(p, r, k) ? 1 : 0;
      }
      visible_entries += seen;
      reached = reached || seen > 0;
      all.add(rows, keys);
      if (seen > 0) visited.add(rows, keys);
      if (seen > 0 && seen < rows * keys) masked.add(rows, keys);
      if (seen < rows * keys) masked_all.add(rows, keys);
    }
    if (reached) {
      keys_reached += keys;
      tiles_reached += 1;
    }
  }
  const Visited sums = visited_sums(p, t);
  CAPTURE(shape_text(p), p.causal, name_of(p.alignment), tiling_text(t));
  REQUIRE(sums.query_tiles == Count(query_tiles));
  REQUIRE(sums.key_tiles == Count(key_tiles));
  REQUIRE(same(sums.all, all));
  REQUIRE(same(sums.visited, visited));
  REQUIRE(same(sums.masked, masked));
  REQUIRE(same(sums.masked_all, masked_all));
  REQUIRE(sums.keys_reached == Count(keys_reached));
  REQUIRE(sums.tiles_reached == Count(tiles_reached));
  REQUIRE(visible_pairs(p) == Count(visible_entries));
}

TEST_CASE("the closed sums equal the loop over every pair, for every small shape") {
  test::for_every_small_shape(7, check_sums);
}

TEST_CASE("the closed sums equal the loop over every pair, for random shapes") {
  test::RandomShapes shapes(2);
  for (int n = 0; n < 2000; ++n) {
    const test::Shape shape = shapes.next(60);
    check_sums(shape.problem, shape.tiling);
  }
}

TEST_CASE("at 2^40 queries the closed sums are exact, and take no time") {
  // One key tile: every row sees it but, aligned at the bottom right, those above the diagonal.
  const std::int64_t longest = std::int64_t{1} << 40;
  const auto start = std::chrono::steady_clock::now();
  Problem p{.heads = 1,
            .kv_heads = 1,
            .seq = longest,
            .kv_seq = 4,
            .head_dim = 1,
            .causal = true,
            .alignment = CausalAlignment::bottom_right};
  CHECK(visible_pairs(p) == Count(1 + 2 + 3 + 4));
  CHECK(visited_sums(p, {128, 128}).visited.pairs == Count(1));
  CHECK(visited_sums(p, {1, 1}).visited.pairs == Count(10));
  p.alignment = CausalAlignment::top_left;
  CHECK(visible_pairs(p) == Count(1 + 2 + 3 + 4 * (longest - 3)));
  CHECK(visited_sums(p, {128, 128}).visited.pairs == Count(longest / 128));
  CHECK(visited_sums(p, {128, 128}).masked.pairs == Count(1));
  CHECK(visited_sums(p, {1, 1}).visited.pairs == Count(1 + 2 + 3 + 4 * (longest - 3)));
  // A square: the triangle's pairs, in tiles that still fit 64 bits.
  p.kv_seq = longest;
  const std::int64_t side = std::int64_t{1} << 20;
  CHECK(visited_sums(p, {side, side}).visited.pairs == Count(side * (side + 1) / 2));
  CHECK(visited_sums(p, {side, side}).masked.pairs == Count(side));
  CHECK(visited_sums(p, {side, side}).visited.entries.overflowed());
  CHECK(visited_sums(p, {1, 1}).visited.pairs.overflowed());
  CHECK(visible_pairs(p).overflowed());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace flashsim
