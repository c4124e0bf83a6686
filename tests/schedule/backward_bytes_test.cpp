// What the backward walks move, against loops over the mask.
#include <algorithm>
#include <map>
#include <set>

#include "core/problem/operands.hpp"
#include "core/schedule/tile_grid.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::followed_backward;
using test::FollowedWalk;
using test::for_every_small_shape;
using test::visible_tiles;

/// Bytes read and written of each tensor, and what crosses into the SMs, which repeats what HBM reads once.
struct Moved {
  std::map<Operand, std::int64_t> read, written, into_sm;
  bool operator==(const Moved&) const = default;
};

Moved moved_by(const FollowedWalk& walk, const Problem& p) {
  Moved moved;
  for (const Step& step : walk.steps()) {
    const auto bytes = static_cast<std::int64_t>(tile_bytes(step, p).count.value());
    if (step.operation == Operation::load) {
      moved.into_sm[step.operand] += bytes;
      if (!step.again) moved.read[step.operand] += bytes;
    }
    if (step.operation == Operation::store || step.operation == Operation::initialise) {
      moved.written[step.operand] += bytes;
    }
  }
  return moved;
}

std::int64_t stored_bytes(const Problem& p, std::int64_t elements) { return elements * size_of(p.storage); }
std::int64_t summed_bytes(const Problem& p, std::int64_t elements) {
  return elements * (p.storage == NumberType::fp64 ? 8 : 4);
}

/// By straight loops over the visible pairs.
Moved flash2_moves(const Problem& p, Tiling t) {
  std::int64_t rows = 0;  // of query tiles, once for each visited pair
  std::set<std::int64_t> key_tiles;
  for (const auto& [i, j] : visible_tiles(p, t)) {
    rows += std::min(t.query_rows, p.seq - i * t.query_rows);
    key_tiles.insert(j);
  }
  std::int64_t keys = 0;
  for (const std::int64_t j : key_tiles) keys += std::min(t.key_rows, p.kv_seq - j * t.key_rows);
  const std::int64_t n = p.seq;
  const std::int64_t d = p.head_dim;
  const bool converts = p.storage != (p.storage == NumberType::fp64 ? NumberType::fp64 : NumberType::fp32);
  const Operand sum = converts ? Operand::dQ_sum : Operand::dQ;
  Moved moved;
  if (rows > 0) {
    moved.read = {{Operand::Q, stored_bytes(p, rows * d)},
                  {Operand::L, summed_bytes(p, rows)},
                  {Operand::D, summed_bytes(p, rows)},
                  {Operand::K, stored_bytes(p, keys * d)},
                  {Operand::V, stored_bytes(p, keys * d)}};
  }
  moved.read[Operand::O] = stored_bytes(p, n * d);
  moved.read[Operand::dO] = stored_bytes(p, (rows + n) * d);
  const std::int64_t sums_read = rows * d + (converts ? n * d : 0);
  if (sums_read > 0) moved.read[sum] = summed_bytes(p, sums_read);
  moved.written = {{Operand::D, summed_bytes(p, n)},
                   {Operand::dK, stored_bytes(p, p.kv_seq * d)},
                   {Operand::dV, stored_bytes(p, p.kv_seq * d)}};
  moved.written[sum] = summed_bytes(p, (rows + n) * d);
  if (converts) moved.written[Operand::dQ] = stored_bytes(p, n * d);
  moved.into_sm = moved.read;  // a flash kernel pays for every load
  return moved;
}

Moved standard_moves(const Problem& p, Tiling t) {
  const std::int64_t n = p.seq;
  const std::int64_t m = p.kv_seq;
  const std::int64_t d = p.head_dim;
  const std::int64_t query_tiles = (n + t.query_rows - 1) / t.query_rows;
  const std::int64_t key_tiles = (m + t.key_rows - 1) / t.key_rows;
  const auto bytes = [&](std::int64_t elements) { return stored_bytes(p, elements); };
  return {.read = {{Operand::P, bytes(2 * n * m)},
                   {Operand::dP, bytes(n * m)},
                   {Operand::dS, bytes(2 * n * m)},
                   {Operand::dO, bytes(2 * n * d)},
                   {Operand::Q, bytes(n * d)},
                   {Operand::K, bytes(m * d)},
                   {Operand::V, bytes(m * d)}},
          .written = {{Operand::dP, bytes(n * m)},
                      {Operand::dS, bytes(n * m)},
                      {Operand::dQ, bytes(n * d)},
                      {Operand::dK, bytes(m * d)},
                      {Operand::dV, bytes(m * d)}},
          .into_sm = {{Operand::P, bytes(2 * n * m)},
                      {Operand::dP, bytes(n * m)},
                      {Operand::dS, bytes(2 * n * m)},
                      {Operand::dO, bytes(2 * n * d * key_tiles)},
                      {Operand::Q, bytes(n * d * key_tiles)},
                      {Operand::K, bytes(m * d * query_tiles)},
                      {Operand::V, bytes(m * d * query_tiles)}}};
}

TEST_CASE("backward, every tensor's bytes are those that loops over the mask count") {
  const auto look = [](const Problem& p, Tiling t) {
    CAPTURE(shape_text(p), tiling_text(t), name_of(p.storage), p.causal, name_of(p.alignment));
    REQUIRE(moved_by(followed_backward(Algorithm::flash2, p, t), p) == flash2_moves(p, t));
    REQUIRE(moved_by(followed_backward(Algorithm::standard, p, t), p) == standard_moves(p, t));
  };
  for (const NumberType storage : {NumberType::fp16, NumberType::fp32, NumberType::fp64}) {
    for_every_small_shape(4, [&](Problem p, Tiling t) {
      p.storage = storage;
      look(p, t);
    });
  }
  test::RandomShapes shapes(2307);
  for (int i = 0; i < 200; ++i) {
    const test::Shape shape = shapes.next(40);
    look(shape.problem, shape.tiling);
  }
}

TEST_CASE("standard moves 7 N² + 8 N d elements backward") {
  for (const std::int64_t n : {1, 5, 64}) {
    const Problem p{.seq = n, .kv_seq = n, .head_dim = 16, .storage = NumberType::fp32};
    const Moved moved = moved_by(followed_backward(Algorithm::standard, p, {4, 8}), p);
    std::int64_t bytes = 0;
    for (const auto& [operand, read] : moved.read) bytes += read;
    for (const auto& [operand, written] : moved.written) bytes += written;
    CHECK(bytes == 4 * (7 * n * n + 8 * n * 16));
  }
}

TEST_CASE("a key tile that no query sees is written as zeros, and nothing is loaded for it") {
  // Top-left, two queries on six keys: the keys from 2 on are behind every row.
  const Problem p{.seq = 2,
                  .kv_seq = 6,
                  .head_dim = 2,
                  .causal = true,
                  .alignment = CausalAlignment::top_left,
                  .storage = NumberType::fp32};
  std::map<std::int64_t, std::vector<std::string>> lines;
  const FollowedWalk walk = followed_backward(Algorithm::flash2, p, {2, 2});
  for (const Step& step : walk.steps()) {
    if (step.key_tile > 0) {
      lines[step.key_tile].push_back(fmt::format("{} {}", name_of(step.operation), name_of(step.operand)));
    }
  }
  const std::vector<std::string> expected{"reset dK", "store dK", "store dV"};
  CHECK(lines == std::map<std::int64_t, std::vector<std::string>>{{1, expected}, {2, expected}});
}
}  // namespace
}  // namespace flashsim
