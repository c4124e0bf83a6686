// The order of every walk, spelled out for one tiny problem: three queries on three keys, causal, tiles
// of two.
#include <string>
#include <vector>

#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::lines_of;

constexpr Tiling kTiles{2, 2};
constexpr Problem kTiny{
    .batch = 2, .heads = 4, .kv_heads = 2, .seq = 3, .kv_seq = 3, .head_dim = 2, .causal = true};

TEST_CASE("flash2 finishes one query tile after the other, on the key tiles that it sees") {
  CHECK(FollowedWalk(Algorithm::flash2, kTiny, kTiles).lines() == lines_of(R"(
allocate O
allocate L
kernel attention 2
load Q 0
reset 0
load K 0 0
load V 0 0
scores 0 0
mask 0 0
online_softmax 0 0
rescale 0 0
accumulate 0 0
discard 0 0
finish 0
store O 0
store L 0
load Q 1
reset 1
load K 1 0
load V 1 0
scores 1 0
mask 1 0 idle
online_softmax 1 0
rescale 1 0
accumulate 1 0
discard 1 0
load K 1 1
load V 1 1
scores 1 1
mask 1 1 idle
online_softmax 1 1
rescale 1 1
accumulate 1 1
discard 1 1
finish 1
store O 1
store L 1
)"));
}

TEST_CASE("flash1 takes one key tile after the other past the query tiles that see it") {
  CHECK(FollowedWalk(Algorithm::flash1, kTiny, kTiles).lines() == lines_of(R"(
allocate O
allocate l
allocate m
kernel attention 1
initialise O 0
initialise l 0
initialise m 0
initialise O 1
initialise l 1
initialise m 1
load K 0
load V 0
load Q 0 0
load O 0 0
load l 0 0
load m 0 0
scores 0 0
mask 0 0
online_softmax 0 0
rescale 0 0
accumulate 0 0
finish 0 0
store O 0 0
store l 0 0
store m 0 0
discard 0 0
load Q 1 0
load O 1 0
load l 1 0
load m 1 0
scores 1 0
mask 1 0 idle
online_softmax 1 0
rescale 1 0
accumulate 1 0
finish 1 0
store O 1 0
store l 1 0
store m 1 0
discard 1 0
load K 1
load V 1
load Q 1 1
load O 1 1
load l 1 1
load m 1 1
scores 1 1
mask 1 1 idle
online_softmax 1 1
rescale 1 1
accumulate 1 1
finish 1 1
store O 1 1
store l 1 1
store m 1 1
discard 1 1
)"));
}

TEST_CASE("standard multiplies, normalises whole rows, and multiplies again") {
  CHECK(FollowedWalk(Algorithm::standard, kTiny, {2, 3}).lines() == lines_of(R"(
allocate S
kernel scores 2
load Q 0 0
load K 0 0
scores 0 0
store S 0 0
load Q 1 0
load K 1 0 again
scores 1 0
store S 1 0
kernel softmax 2
load S 0 0
mask 0 0
softmax 0
store P 0 0
load S 1 0
mask 1 0 idle
softmax 1
store P 1 0
allocate O
kernel output 2
reset 0
load P 0 0
load V 0 0
accumulate 0 0
store O 0
reset 1
load P 1 0
load V 1 0 again
accumulate 1 0
store O 1
)"));
}

TEST_CASE("eager makes a pass of its own, with a tensor of its own, of every line") {
  CHECK(FollowedWalk(Algorithm::eager, kTiny, {3, 2}).lines() == lines_of(R"(
allocate S
kernel scores 2
load Q 0 0
load K 0 0
scores 0 0
store S 0 0
load Q 0 1 again
load K 0 1
scores 0 1
store S 0 1
allocate S
kernel scale 2
load S 0 0
scale 0 0
store S 0 0
load S 0 1
scale 0 1
store S 0 1
release S
allocate S
kernel mask 2
load S 0 0
mask 0 0
store S 0 0
load S 0 1
mask 0 1
store S 0 1
release S
allocate P
kernel softmax 1
load S 0 0
load S 0 1
softmax 0
store P 0 0
store P 0 1
allocate O
kernel output 1
reset 0
load P 0 0
load V 0 0
accumulate 0 0
load P 0 1
load V 0 1
accumulate 0 1
store O 0
)"));
}

TEST_CASE("flash1 gives a head one thread block and flash2 gives every query tile one") {
  const Problem p{.seq = 10, .kv_seq = 6, .head_dim = 2, .causal = false};
  using Kernels = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(FollowedWalk(Algorithm::flash1, p, {3, 2}).kernels() == Kernels{{"attention", 1}});
  CHECK(FollowedWalk(Algorithm::flash2, p, {3, 2}).kernels() == Kernels{{"attention", 4}});
  CHECK(FollowedWalk(Algorithm::standard, p, {3, 2}).kernels() ==
        Kernels{{"scores", 12}, {"softmax", 4}, {"output", 4}});
  CHECK(FollowedWalk(Algorithm::eager, p, {3, 2}).kernels() ==
        Kernels{{"scores", 12}, {"scale", 12}, {"softmax", 4}, {"output", 4}});
}

TEST_CASE(
    "a query tile that sees no key is still loaded, finished and stored by flash2, and left alone by "
    "flash1") {
  const Problem p{
      .seq = 4, .kv_seq = 2, .head_dim = 2, .causal = true, .alignment = CausalAlignment::bottom_right};
  const auto lines = FollowedWalk(Algorithm::flash2, p, {2, 2}).lines();
  CHECK(std::vector<std::string>(lines.begin() + 3, lines.begin() + 8) ==
        lines_of("load Q 0\nreset 0\nfinish 0\nstore O 0\nstore L 0"));
  for (const Step& step : FollowedWalk(Algorithm::flash1, p, {2, 2}).steps()) {
    if (step.query_tile == 0) CHECK(step.operation == Operation::initialise);
  }
}

}  // namespace
}  // namespace flashsim
