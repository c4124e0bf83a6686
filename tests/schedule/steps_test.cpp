// What a step says of itself: its rows and keys, whether it is a repeat, whether it does nothing.
#include "core/schedule/step.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::for_every_small_shape;

TEST_CASE("a step's rows and keys are the valid ones of its tiles") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      for (const Step& step : FollowedWalk(facts.algorithm, p, t).steps()) {
        if (step.query_tile < 0) {
          // flash1 loads a key tile for every query tile that comes after.
          REQUIRE(facts.algorithm == Algorithm::flash1);
          REQUIRE(step.operation == Operation::load);
          REQUIRE((step.operand == Operand::K || step.operand == Operand::V));
          REQUIRE(step.rows.begin == 0);
          REQUIRE(step.rows.end == p.seq);
        } else {
          REQUIRE(step.rows.begin == step.query_tile * t.query_rows);
          REQUIRE(step.rows.end == std::min(step.rows.begin + t.query_rows, p.seq));
        }
        REQUIRE(step.rows.size() >= 1);
        if (step.key_tile < 0) continue;
        REQUIRE(step.keys.begin == step.key_tile * t.key_rows);
        REQUIRE(step.keys.end == std::min(step.keys.begin + t.key_rows, p.kv_seq));
        REQUIRE(step.keys.size() >= 1);
      }
    });
  }
}

TEST_CASE("the softmax of standard and eager takes whole rows, every key of them") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 5, .kv_seq = 7, .head_dim = 2, .causal = true};
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    int seen = 0;
    for (const Step& step : FollowedWalk(algorithm, p, {2, 3}).steps()) {
      if (step.operation != Operation::softmax) continue;
      ++seen;
      CHECK(step.keys.begin == 0);
      CHECK(step.keys.end == 7);
    }
    CHECK(seen == 3);
  }
}

TEST_CASE("in a matrix product a load is a repeat when this kernel has loaded the tile before") {
  // The tile is known by its rows or keys: Q_i and K_j come again for every tile of S that needs them.
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      const FollowedWalk walk(algorithm, p, t);
      std::set<std::tuple<std::size_t, Operand, std::int64_t, std::int64_t>> loaded;
      for (std::size_t n = 0; n < walk.steps().size(); ++n) {
        const Step& step = walk.steps()[n];
        if (step.operation != Operation::load) {
          REQUIRE_FALSE(step.again);
          continue;
        }
        const bool by_rows =
            step.operand == Operand::Q || step.operand == Operand::S || step.operand == Operand::P;
        const bool by_keys = step.operand != Operand::Q;
        const bool first = loaded
                               .insert({walk.kernel_of_step()[n], step.operand,
                                        by_rows ? step.query_tile : -1, by_keys ? step.key_tile : -1})
                               .second;
        REQUIRE(step.again == !first);
      }
    });
  }
}

TEST_CASE("a kernel that keeps its tiles on the chip pays for every load, so none is a repeat") {
  for (const Algorithm algorithm :
       {Algorithm::flash1, Algorithm::flash2, Algorithm::three_pass, Algorithm::three_pass_stored}) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      for (const Step& step : FollowedWalk(algorithm, p, t).steps()) REQUIRE_FALSE(step.again);
    });
  }
}

TEST_CASE("a mask is idle exactly where every pair of the tile is visible") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      for (const Step& step : FollowedWalk(facts.algorithm, p, t).steps()) {
        if (step.operation != Operation::mask) {
          REQUIRE_FALSE(step.idle);
          continue;
        }
        bool all_visible = true;
        for (std::int64_t row = step.rows.begin; row < step.rows.end; ++row) {
          for (std::int64_t key = step.keys.begin; key < step.keys.end; ++key) {
            all_visible = all_visible && test::visible(p, row, key);
          }
        }
        REQUIRE(step.idle == all_visible);
      }
    });
  }
}

TEST_CASE("a tile has the elements of its valid rows, in the type of its tensor") {
  const Problem p{.head_dim = 11, .storage = NumberType::fp16};
  Step step{.operation = Operation::load, .rows = {4, 7}, .keys = {10, 15}};
  const auto bytes = [&](Operand operand) {
    step.operand = operand;
    return tile_bytes(step, p);
  };
  CHECK(bytes(Operand::Q) == Bytes(3 * 11 * 2));
  CHECK(bytes(Operand::O) == Bytes(3 * 11 * 2));
  CHECK(bytes(Operand::K) == Bytes(5 * 11 * 2));
  CHECK(bytes(Operand::V) == Bytes(5 * 11 * 2));
  CHECK(bytes(Operand::S) == Bytes(3 * 5 * 2));
  CHECK(bytes(Operand::P) == Bytes(3 * 5 * 2));
  CHECK(bytes(Operand::L) == Bytes(3 * 4));
  CHECK(bytes(Operand::m) == Bytes(3 * 4));
  CHECK(bytes(Operand::l) == Bytes(3 * 4));
}

}  // namespace
}  // namespace flashsim
