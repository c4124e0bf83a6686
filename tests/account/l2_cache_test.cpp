// The L2: what must hold of any cache, and what this one was built to show.
#include <algorithm>
#include <random>
#include <vector>

#include "core/account/l2_cache.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kTile = 1024;

TEST_CASE("a tile is read from memory once and found by both sides afterwards") {
  for (const std::int64_t partitions : {1, 2, 3}) {
    L2Cache cache(Bytes(100 * kTile), partitions, 1);
    CHECK(cache.load(0, 1001, 0) == 1001);
    for (std::int64_t side = 0; side < partitions; ++side) CHECK(cache.load(0, 1001, side) == 0);
    CHECK(cache.hbm_read_bytes() == 1001);
    CHECK(cache.compulsory_read_bytes() == 1001);
  }
}

TEST_CASE("reads lie between each byte once and every byte asked for") {
  std::mt19937_64 random(7);
  for (const std::int64_t partitions : {1, 2}) {
    for (const std::int64_t room : {1, 5, 40, 400}) {
      L2Cache cache(Bytes(room * kTile), partitions, 100);
      std::int64_t asked = 0;
      std::vector<bool> seen(100);
      std::int64_t once = 0;
      for (int i = 0; i < 5000; ++i) {
        const auto tile = static_cast<std::int64_t>(random() % 100);
        cache.load(tile, kTile, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(partitions)));
        asked += kTile;
        if (!seen[static_cast<std::size_t>(tile)]) once += kTile;
        seen[static_cast<std::size_t>(tile)] = true;
      }
      CHECK(cache.compulsory_read_bytes() == once);
      CHECK(cache.hbm_read_bytes() >= once);
      CHECK(cache.hbm_read_bytes() <= asked);
      if (room == 400) CHECK(cache.hbm_read_bytes() == once);
    }
  }
}

TEST_CASE("what one SM alone reads again takes its place once, what both sides read takes it twice") {
  const auto missed_in_the_end = [](std::int64_t tiles, bool by_both_sides) {
    L2Cache cache(Bytes(100 * kTile), 2, tiles);
    std::int64_t missed = 0;
    for (int round = 0; round < 60; ++round) {
      missed = 0;
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        missed += cache.load(tile, kTile, tile % 2);
        if (by_both_sides) missed += cache.load(tile, kTile, 1 - tile % 2);
      }
    }
    return missed;
  };
  CHECK(missed_in_the_end(50, true) == 0);
  CHECK(missed_in_the_end(66, false) == 0);
  CHECK(missed_in_the_end(66, true) > 5 * kTile);
}

TEST_CASE("a working set a little too large loses part of its hits, not all of them") {
  L2Cache cache(Bytes(100 * kTile), 1, 110);
  std::int64_t missed = 0;
  for (int round = 0; round < 100; ++round) {
    missed = 0;
    for (std::int64_t tile = 0; tile < 110; ++tile) missed += cache.load(tile, kTile, 0);
  }
  CHECK(missed > 0);
  CHECK(missed < 100 * kTile);
}

TEST_CASE("stores wait in a seventh of the cache, and the oldest are written to memory") {
  L2Cache cache(Bytes(70 * kTile), 2, 1000);
  for (std::int64_t tile = 0; tile < 10; ++tile) cache.store(tile, kTile, tile % 2);
  CHECK(cache.hbm_write_bytes() == 0);
  CHECK(cache.waiting_bytes() == 10 * kTile);
  for (std::int64_t tile = 10; tile < 1000; ++tile) cache.store(tile, kTile, tile % 2);
  CHECK(cache.hbm_write_bytes() + cache.waiting_bytes() == 1000 * kTile);
  CHECK(cache.waiting_bytes() == 10 * kTile);
  CHECK(cache.hbm_read_bytes() == 0);
}

TEST_CASE("what was stored is found, and isn't compulsory to read") {
  L2Cache cache(Bytes(80 * kTile), 2, 2);
  cache.store(0, kTile, 0);
  CHECK(cache.load(0, kTile, 0) == 0);
  CHECK(cache.load(0, kTile, 1) == 0);
  CHECK(cache.compulsory_read_bytes() == 0);
}

TEST_CASE("a tile that is stored again before it is written counts once") {
  L2Cache cache(Bytes(80 * kTile), 1, 1);
  for (int i = 0; i < 100; ++i) cache.store(0, kTile, 0);
  CHECK(cache.waiting_bytes() == kTile);
  CHECK(cache.hbm_write_bytes() == 0);
}

TEST_CASE("a tile larger than the cache passes through it") {
  L2Cache cache(Bytes(kTile), 1, 2);
  for (int i = 0; i < 3; ++i) CHECK(cache.load(0, 5 * kTile, 0) == 5 * kTile);
}

}  // namespace
}  // namespace flashsim
