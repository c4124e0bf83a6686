// A walk taken in parts makes the steps of the whole walk, and tells kernels and memory once.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/schedule/tile_grid.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::for_every_small_shape;

/// All that a step says.
auto all_of(const Step& s) {
  return std::tuple(s.operation, s.operand, s.query_tile, s.key_tile, s.rows.begin, s.rows.end, s.keys.begin,
                    s.keys.end, s.part, s.again, s.idle);
}
using Told = decltype(all_of(Step()));

/// The steps that count, as a walk makes them.
std::vector<Told> told(const FollowedWalk& walk) {
  std::vector<Told> steps;
  for (const Step& step : walk.steps()) {
    if (!step.elsewhere) steps.push_back(all_of(step));
  }
  return steps;
}

std::vector<Told> sorted(std::vector<Told> steps) {
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// The steps of each query tile, in order. What belongs to none is number −1.
std::map<std::int64_t, std::vector<Told>> by_query_tile(const FollowedWalk& walk) {
  std::map<std::int64_t, std::vector<Told>> tiles;
  for (const Step& step : walk.steps()) {
    if (step.query_tile >= 0) tiles[step.query_tile].push_back(all_of(step));
  }
  return tiles;
}

/// What a walk tells beside its steps.
std::vector<std::string> kernels_and_memory(const FollowedWalk& walk) {
  std::vector<std::string> lines;
  for (const std::string& line : walk.lines()) {
    for (const std::string_view word : {"kernel ", "allocate ", "release "}) {
      if (line.starts_with(word)) lines.push_back(line);
    }
  }
  return lines;
}

/// Cuts `all` into parts of `width` tiles, the last first.
std::vector<Range> parts_of(Range all, std::int64_t width) {
  std::vector<Range> parts;
  for (std::int64_t begin = 0; begin < all.end; begin += width) {
    parts.push_back({begin, std::min(begin + width, all.end)});
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

TEST_CASE("the parts of a walk make its steps, each once, and tell kernels and memory once") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      const Method method{.algorithm = facts.algorithm,
                          .tiling = t,
                          .splits = facts.algorithm == Algorithm::split_kv ? 2 : 1};
      const FollowedWalk whole(p, method);
      const TileGrid grid(p, t);
      for (const std::int64_t width : {1, 2, 3}) {
        if (width > 1 && width >= grid.query_tiles() + 1) break;
        FollowedWalk together;
        for (const Range part : parts_of(grid.every_query_tile(), width)) {
          walk_part(p, method, part, together);
        }
        CAPTURE(facts.name, shape_text(p), tiling_text(t), width);
        REQUIRE(sorted(told(together)) == sorted(told(whole)));
        REQUIRE(by_query_tile(together) == by_query_tile(whole));
        REQUIRE(kernels_and_memory(together) == kernels_and_memory(whole));
      }
    });
  }
}

TEST_CASE("a walk in one part is the walk itself") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for_every_small_shape(3, [&](const Problem& p, Tiling t) {
      const FollowedWalk whole(facts.algorithm, p, t);
      FollowedWalk part;
      walk_part(facts.algorithm, p, t, TileGrid(p, t).every_query_tile(), part);
      REQUIRE(part.lines() == whole.lines());
      for (const Step& step : whole.steps()) REQUIRE_FALSE(step.elsewhere);
    });
  }
}

TEST_CASE("a part makes the steps of its own query tiles and no other's") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for_every_small_shape(3, [&](const Problem& p, Tiling t) {
      for (const Range part : parts_of(TileGrid(p, t).every_query_tile(), 1)) {
        FollowedWalk alone;
        walk_part(facts.algorithm, p, t, part, alone);
        for (const Step& step : alone.steps()) {
          REQUIRE((step.query_tile == part.begin || step.query_tile == -1));
        }
      }
    });
  }
}

TEST_CASE("what a part shares with an earlier one it loads all the same, marked as another's") {
  for_every_small_shape(4, [&](const Problem& p, Tiling t) {
    const TileGrid grid(p, t);
    std::set<std::int64_t> loaded_before;
    for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
      FollowedWalk part;
      walk_part(Algorithm::flash1, p, t, {i, i + 1}, part);
      std::set<std::pair<Operand, std::int64_t>> here;
      for (const Step& step : part.steps()) {
        const bool keys =
            step.operation == Operation::load && (step.operand == Operand::K || step.operand == Operand::V);
        if (keys) {
          here.insert({step.operand, step.key_tile});
          REQUIRE(step.elsewhere == (loaded_before.count(step.key_tile) == 1));
        } else {
          REQUIRE_FALSE(step.elsewhere);
        }
        if (step.operation == Operation::scores) REQUIRE(here.count({Operand::K, step.key_tile}) == 1);
        if (step.operation == Operation::accumulate) REQUIRE(here.count({Operand::V, step.key_tile}) == 1);
      }
      for (const auto& [operand, tile] : here) loaded_before.insert(tile);
    }
  });
  // The other walks share nothing.
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager, Algorithm::flash2}) {
    for_every_small_shape(3, [&](const Problem& p, Tiling t) {
      for (const Range part : parts_of(TileGrid(p, t).every_query_tile(), 1)) {
        FollowedWalk alone;
        walk_part(algorithm, p, t, part, alone);
        for (const Step& step : alone.steps()) REQUIRE_FALSE(step.elsewhere);
      }
    });
  }
}

TEST_CASE("the parts of flash2's backward kernels make the steps of its backward walk, each once") {
  using enum BackwardKernel;
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16}) {
    for_every_small_shape(4, [&](Problem p, Tiling t) {
      p.storage = storage;
      const TileGrid grid(p, t);
      FollowedWalk whole;
      walk_backward(Algorithm::flash2, p, t, whole);
      for (const std::int64_t width : {1, 2}) {
        FollowedWalk together;
        for (const auto& [kernel, tiles] :
             {std::pair{deltas, grid.every_query_tile()}, std::pair{gradients, grid.every_key_tile()},
              std::pair{conversion, grid.every_query_tile()}}) {
          for (const Range part : parts_of(tiles, width)) walk_backward_part(kernel, p, t, part, together);
        }
        CAPTURE(shape_text(p), tiling_text(t), name_of(storage), width);
        REQUIRE(sorted(told(together)) == sorted(told(whole)));
        REQUIRE(kernels_and_memory(together) == kernels_and_memory(whole));
        for (const Step& step : together.steps()) REQUIRE_FALSE(step.elsewhere);
      }
      // In one part, in rising order, it is the walk itself.
      FollowedWalk in_order;
      walk_backward_part(deltas, p, t, grid.every_query_tile(), in_order);
      walk_backward_part(gradients, p, t, grid.every_key_tile(), in_order);
      walk_backward_part(conversion, p, t, grid.every_query_tile(), in_order);
      REQUIRE(in_order.lines() == whole.lines());
    });
  }
}

}  // namespace
}  // namespace flashsim
