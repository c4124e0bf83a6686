// Which tiles a walk visits, against the mask spelled out pair by pair.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::for_every_small_shape;
using Pair = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t kLongest = 6;

/// The tile pairs that hold at least one visible pair.
std::set<Pair> visible_tiles(const Problem& p, Tiling t) {
  std::set<Pair> found;
  for (std::int64_t row = 0; row < p.seq; ++row) {
    for (std::int64_t key = 0; key < p.kv_seq; ++key) {
      if (test::visible(p, row, key)) found.insert({row / t.query_rows, key / t.key_rows});
    }
  }
  return found;
}

/// Every tile pair of the grid.
std::set<Pair> all_tiles(const Problem& p, Tiling t) {
  std::set<Pair> found;
  for (std::int64_t row = 0; row < p.seq; ++row) {
    for (std::int64_t key = 0; key < p.kv_seq; ++key) found.insert({row / t.query_rows, key / t.key_rows});
  }
  return found;
}

/// How often `operation` is done on each tile pair; for a move, with `operand`.
std::map<Pair, int> times(const FollowedWalk& walk, Operation operation, Operand operand = {}) {
  std::map<Pair, int> found;
  for (const Step& step : walk.steps()) {
    const bool moves = operation == Operation::load || operation == Operation::store;
    if (step.operation == operation && (!moves || step.operand == operand)) {
      ++found[{step.query_tile, step.key_tile}];
    }
  }
  return found;
}

std::map<Pair, int> once_each(const std::set<Pair>& pairs) {
  std::map<Pair, int> found;
  for (const Pair& pair : pairs) found[pair] = 1;
  return found;
}

/// Every query tile, as the pair of a step that belongs to no key tile.
std::set<Pair> query_tiles(const Problem& p, Tiling t) {
  std::set<Pair> found;
  for (std::int64_t row = 0; row < p.seq; ++row) found.insert({row / t.query_rows, -1});
  return found;
}

TEST_CASE("the flash walks work once on every tile pair with a visible entry, and on no other") {
  using enum Operation;
  for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
    for_every_small_shape(kLongest, [&](const Problem& p, Tiling t) {
      const FollowedWalk walk(algorithm, p, t);
      const auto expected = once_each(visible_tiles(p, t));
      for (const Operation operation : {scores, mask, online_softmax, rescale, accumulate}) {
        CAPTURE(facts_of(algorithm).name, shape_text(p), tiling_text(t));
        REQUIRE(times(walk, operation) == expected);
      }
    });
  }
}

TEST_CASE("flash2 loads every query tile once, stores O and L once, and K and V for every visited pair") {
  using enum Operation;
  for_every_small_shape(kLongest, [](const Problem& p, Tiling t) {
    const FollowedWalk walk(Algorithm::flash2, p, t);
    const auto rows = once_each(query_tiles(p, t));
    const auto visited = once_each(visible_tiles(p, t));
    REQUIRE(times(walk, load, Operand::Q) == rows);
    REQUIRE(times(walk, store, Operand::O) == rows);
    REQUIRE(times(walk, store, Operand::L) == rows);
    REQUIRE(times(walk, finish) == rows);
    REQUIRE(times(walk, load, Operand::K) == visited);
    REQUIRE(times(walk, load, Operand::V) == visited);
  });
}

TEST_CASE(
    "flash1 loads a key tile once if some query tile visits it, and its rows' state for every visited pair") {
  using enum Operation;
  for_every_small_shape(kLongest, [](const Problem& p, Tiling t) {
    const FollowedWalk walk(Algorithm::flash1, p, t);
    const auto visited = visible_tiles(p, t);
    std::map<std::int64_t, int> key_tiles;
    for (const Pair& pair : visited) key_tiles[pair.second] = 1;
    for (const Operand operand : {Operand::K, Operand::V}) {
      std::map<std::int64_t, int> loaded;
      for (const auto& [pair, n] : times(walk, load, operand)) loaded[pair.second] += n;
      REQUIRE(loaded == key_tiles);
    }
    for (const Operand operand : {Operand::Q, Operand::O, Operand::l, Operand::m}) {
      REQUIRE(times(walk, load, operand) == once_each(visited));
    }
    for (const Operand operand : {Operand::O, Operand::l, Operand::m}) {
      REQUIRE(times(walk, store, operand) == once_each(visited));
    }
    REQUIRE(times(walk, finish) == once_each(visited));
  });
}

TEST_CASE("flash1 writes the starting values of O, l and m of every query tile once, before all else") {
  for_every_small_shape(4, [](const Problem& p, Tiling t) {
    const FollowedWalk walk(Algorithm::flash1, p, t);
    std::map<Pair, int> written;
    bool started = false;
    for (const Step& step : walk.steps()) {
      if (step.operation == Operation::initialise) {
        REQUIRE_FALSE(started);
        ++written[{step.query_tile, static_cast<std::int64_t>(step.operand)}];
      } else {
        started = true;
      }
    }
    std::map<Pair, int> expected;
    for (const auto& [tile, none] : query_tiles(p, t)) {
      for (const Operand operand : {Operand::O, Operand::l, Operand::m}) {
        expected[{tile, static_cast<std::int64_t>(operand)}] = 1;
      }
    }
    REQUIRE(written == expected);
  });
}

TEST_CASE("standard and eager compute the full matrix, causal or not") {
  using enum Operation;
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      const FollowedWalk walk(algorithm, p, t);
      const auto everything = once_each(all_tiles(p, t));
      REQUIRE(times(walk, scores) == everything);
      REQUIRE(times(walk, accumulate) == everything);
      REQUIRE(times(walk, store, Operand::P) == everything);
      REQUIRE(times(walk, load, Operand::P) == everything);
      REQUIRE(times(walk, softmax) == once_each(query_tiles(p, t)));
      REQUIRE(times(walk, store, Operand::O) == once_each(query_tiles(p, t)));
    });
  }
}

TEST_CASE(
    "eager passes over the scores once more to scale them, and once more to mask them where that is asked") {
  using enum Operation;
  for_every_small_shape(3, [](const Problem& p, Tiling t) {
    const FollowedWalk eager(Algorithm::eager, p, t);
    const FollowedWalk standard(Algorithm::standard, p, t);
    const std::set<Pair> everything = all_tiles(p, t);
    REQUIRE(times(eager, scale) == once_each(everything));
    REQUIRE(times(eager, mask) == (p.causal ? once_each(everything) : std::map<Pair, int>()));
    REQUIRE(times(standard, scale).empty());
    for (const auto& [pair, n] : times(standard, load, Operand::S)) REQUIRE(n == 1);
    for (const auto& [pair, n] : times(eager, load, Operand::S)) REQUIRE(n == (p.causal ? 3 : 2));
    for (const auto& [pair, n] : times(eager, store, Operand::S)) REQUIRE(n == (p.causal ? 3 : 2));
  });
}

TEST_CASE("a causal N of 1024 in tiles of 64 visits 136 of 256 tile pairs") {
  Problem p{
      .heads = 1, .kv_heads = 1, .seq = 1024, .kv_seq = 1024, .head_dim = 64, .storage = NumberType::fp32};
  for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
    p.causal = true;
    CHECK(times(FollowedWalk(algorithm, p, {64, 64}), Operation::scores).size() == 136);
    p.causal = false;
    CHECK(times(FollowedWalk(algorithm, p, {64, 64}), Operation::scores).size() == 256);
  }
}

}  // namespace
}  // namespace flashsim
