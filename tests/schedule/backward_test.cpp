// The backward walks: their order spelled out, and what they visit.
#include <map>
#include <set>
#include <utility>

#include "core/problem/operands.hpp"
#include "core/schedule/tile_grid.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::followed_backward;
using test::FollowedWalk;
using test::for_every_small_shape;
using test::lines_of;
using test::visible_tiles;
using Pair = std::pair<std::int64_t, std::int64_t>;

constexpr Problem kTiny{
    .batch = 2, .heads = 4, .kv_heads = 2, .seq = 3, .kv_seq = 3, .head_dim = 2, .causal = true};

TEST_CASE("flash2 goes backward key tile by key tile, past the query tiles that see it") {
  CHECK(followed_backward(Algorithm::flash2, kTiny, {2, 2}).lines() == lines_of(R"(
allocate D
allocate dQ sum
kernel deltas 2
initialise dQ sum 0
load O 0
load dO 0
row_dot 0
store D 0
initialise dQ sum 1
load O 1
load dO 1
row_dot 1
store D 1
allocate dK
allocate dV
kernel gradients 2
load K 0
load V 0
reset 0
load Q 0 0
load dO 0 0
load L 0 0
load D 0 0
scores 0 0
mask 0 0
probabilities 0 0
value_gradient 0 0
probability_gradient 0 0
score_gradient 0 0
load dQ sum 0 0
query_gradient 0 0
store dQ sum 0 0
key_gradient 0 0
discard 0 0
load Q 1 0
load dO 1 0
load L 1 0
load D 1 0
scores 1 0
mask 1 0 idle
probabilities 1 0
value_gradient 1 0
probability_gradient 1 0
score_gradient 1 0
load dQ sum 1 0
query_gradient 1 0
store dQ sum 1 0
key_gradient 1 0
discard 1 0
store dK 0
store dV 0
load K 1
load V 1
reset 1
load Q 1 1
load dO 1 1
load L 1 1
load D 1 1
scores 1 1
mask 1 1 idle
probabilities 1 1
value_gradient 1 1
probability_gradient 1 1
score_gradient 1 1
load dQ sum 1 1
query_gradient 1 1
store dQ sum 1 1
key_gradient 1 1
discard 1 1
store dK 1
store dV 1
allocate dQ
kernel conversion 2
load dQ sum 0
store dQ 0
load dQ sum 1
store dQ 1
)"));
}

TEST_CASE("where the sum of dQ has the storage type it is dQ, and nothing is converted") {
  Problem p = kTiny;
  p.storage = NumberType::fp32;
  const FollowedWalk walk = followed_backward(Algorithm::flash2, p, {2, 2});
  CHECK(walk.kernels() == std::vector<std::pair<std::string, std::int64_t>>{{"deltas", 2}, {"gradients", 2}});
  for (const Step& step : walk.steps()) CHECK(step.operand != Operand::dQ_sum);
  CHECK(walk.lines()[1] == "allocate dQ");
}

TEST_CASE("standard goes backward in five kernels over whole matrices") {
  CHECK(followed_backward(Algorithm::standard, kTiny, {3, 2}).lines() == lines_of(R"(
allocate dV
kernel value_gradient 2
reset 0
load P 0 0
load dO 0 0
value_gradient 0 0
store dV 0
reset 1
load P 0 1
load dO 0 1 again
value_gradient 0 1
store dV 1
allocate dP
kernel probability_gradient 2
load dO 0 0
load V 0 0
probability_gradient 0 0
store dP 0 0
load dO 0 1 again
load V 0 1
probability_gradient 0 1
store dP 0 1
kernel score_gradient 1
load P 0 0
load dP 0 0
load P 0 1
load dP 0 1
row_dot 0
score_gradient 0 0
store dS 0 0
score_gradient 0 1
store dS 0 1
allocate dQ
kernel query_gradient 1
reset 0
load dS 0 0
load K 0 0
query_gradient 0 0
load dS 0 1
load K 0 1
query_gradient 0 1
store dQ 0
allocate dK
kernel key_gradient 2
reset 0
load dS 0 0
load Q 0 0
key_gradient 0 0
store dK 0
reset 1
load dS 0 1
load Q 0 1 again
key_gradient 0 1
store dK 1
)"));
}

TEST_CASE("flash2 works backward once on every tile pair with a visible entry, and on no other") {
  for_every_small_shape(5, [](const Problem& p, Tiling t) {
    const std::set<Pair> visible = visible_tiles(p, t);
    const FollowedWalk walk = followed_backward(Algorithm::flash2, p, t);
    std::map<Operation, std::map<Pair, int>> times;
    for (const Step& step : walk.steps()) ++times[step.operation][{step.query_tile, step.key_tile}];
    std::map<Pair, int> once;
    for (const Pair& pair : visible) once[pair] = 1;
    using enum Operation;
    CAPTURE(shape_text(p), tiling_text(t));
    for (const Operation operation : {scores, mask, probabilities, value_gradient, probability_gradient,
                                      score_gradient, query_gradient, key_gradient, discard}) {
      REQUIRE(times[operation] == once);
    }
  });
}

TEST_CASE("standard works backward on the full matrix, causal or not") {
  for_every_small_shape(4, [](const Problem& p, Tiling t) {
    std::map<Operation, std::map<Pair, int>> times;
    const FollowedWalk walk = followed_backward(Algorithm::standard, p, t);
    for (const Step& step : walk.steps()) ++times[step.operation][{step.query_tile, step.key_tile}];
    const TileGrid grid(p, t);
    std::map<Pair, int> once;
    for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
      for (std::int64_t j = 0; j < grid.key_tiles(); ++j) once[{i, j}] = 1;
    }
    using enum Operation;
    for (const Operation operation :
         {value_gradient, probability_gradient, score_gradient, query_gradient, key_gradient}) {
      REQUIRE(times[operation] == once);
    }
    REQUIRE(times[mask].empty());
  });
}
}  // namespace
}  // namespace flashsim
