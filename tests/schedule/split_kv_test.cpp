// The order of the walks of split-kv and of block-sparse attention, spelled out for tiny problems, and how
// both fall back to FlashAttention-2's.
#include <string>
#include <vector>

#include "core/problem/block_pattern.hpp"
#include "core/problem/mask.hpp"
#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::for_every_small_shape;
using test::lines_of;

TEST_CASE("split-kv walks each part of the keys for itself, stores it, and combines the parts at the end") {
  // Two query heads on one key/value head: query 0 is rows 0 and 1, query 1 rows 2 and 3; tiles of two rows
  // and one key. Query 0 sees key 0 alone, so its second part sees nothing.
  const Problem p{
      .batch = 1, .heads = 2, .kv_heads = 1, .seq = 2, .kv_seq = 2, .head_dim = 2, .causal = true};
  const FollowedWalk walk(p, {.algorithm = Algorithm::split_kv, .tiling = {2, 1}, .splits = 2});
  CHECK(walk.lines() == lines_of(R"(
allocate O
allocate L
allocate O part
allocate L part
kernel attention 4
load Q 0 part 0
reset 0 part 0
load K 0 0 part 0
load V 0 0 part 0
scores 0 0 part 0
mask 0 0 part 0 idle
online_softmax 0 0 part 0
rescale 0 0 part 0
accumulate 0 0 part 0
discard 0 0 part 0
finish 0 part 0
store O part 0 part 0
store L part 0 part 0
reset 0 part 1
finish 0 part 1
store O part 0 part 1
store L part 0 part 1
load Q 1 part 0
reset 1 part 0
load K 1 0 part 0
load V 1 0 part 0
scores 1 0 part 0
mask 1 0 part 0 idle
online_softmax 1 0 part 0
rescale 1 0 part 0
accumulate 1 0 part 0
discard 1 0 part 0
finish 1 part 0
store O part 1 part 0
store L part 1 part 0
load Q 1 part 1
reset 1 part 1
load K 1 1 part 1
load V 1 1 part 1
scores 1 1 part 1
mask 1 1 part 1 idle
online_softmax 1 1 part 1
rescale 1 1 part 1
accumulate 1 1 part 1
discard 1 1 part 1
finish 1 part 1
store O part 1 part 1
store L part 1 part 1
kernel combine 2
reset 0
load L part 0 part 0
load L part 0 part 1
load O part 0 part 0
combine 0 part 0
load O part 0 part 1
combine 0 part 1
finish 0
store O 0
store L 0
reset 1
load L part 1 part 0
load L part 1 part 1
load O part 1 part 0
combine 1 part 0
load O part 1 part 1
combine 1 part 1
finish 1
store O 1
store L 1
)"));
}

TEST_CASE("one part of heads of their own is FlashAttention-2's walk") {
  for_every_small_shape(4, [](const Problem& p, Tiling t) {
    const FollowedWalk split(p, {.algorithm = Algorithm::split_kv, .tiling = t});
    REQUIRE(split.lines() == FollowedWalk(Algorithm::flash2, p, t).lines());
  });
}

TEST_CASE("every key tile that some row of a packed query tile sees is visited once, in one part") {
  for_every_small_shape(3, [](Problem p, Tiling t) {
    p.heads = 3;
    const Problem packed = packed_heads(p);
    for (const std::int64_t splits : {2, 3, 9}) {
      const FollowedWalk walk(p, {.algorithm = Algorithm::split_kv, .tiling = t, .splits = splits});
      const std::int64_t key_tiles = (p.kv_seq - 1) / t.key_rows + 1;
      std::vector<int> visits(static_cast<std::size_t>((packed.seq - 1) / t.query_rows + 1) *
                              static_cast<std::size_t>(key_tiles));
      for (const Step& step : walk.steps()) {
        if (step.operation != Operation::scores) continue;
        REQUIRE(step.part == step.key_tile / ((key_tiles - 1) / splits + 1));
        ++visits[static_cast<std::size_t>(step.query_tile * key_tiles + step.key_tile)];
      }
      for (std::int64_t row = 0; row < packed.seq; ++row) {
        for (std::int64_t key = 0; key < p.kv_seq; ++key) {
          // Row r is query ⌊r/3⌋.
          const bool seen = key < (p.causal ? row / 3 + 1 + position_of_first_query(p) : p.kv_seq);
          const auto at = static_cast<std::size_t>(row / t.query_rows * key_tiles + key / t.key_rows);
          if (seen) REQUIRE(visits[at] == 1);
        }
      }
    }
  });
}

TEST_CASE("packing keeps the size of every tensor, and a packed problem stays as it is") {
  const Problem p{.batch = 3, .heads = 8, .kv_heads = 2, .seq = 5, .kv_seq = 7, .head_dim = 4};
  const Problem packed = packed_heads(p);
  CHECK(packed.heads == 2);
  CHECK(packed.seq == 20);
  CHECK(packed.rows_per_query == 4);
  for (const Operand operand : kOperands) CHECK(whole_size(operand, packed) == whole_size(operand, p));
  CHECK(packed_heads(packed).seq == 20);
  CHECK(packed_heads(packed).rows_per_query == 4);
  for (std::int64_t row = 0; row < packed.seq; ++row) {
    CHECK(visible_keys(packed, row) == visible_keys(p, row / 4));
  }
  for (std::int64_t key = 0; key < p.kv_seq; ++key) {
    CHECK(first_query_seeing(packed, key) == 4 * first_query_seeing(p, key));
  }
}

TEST_CASE("block-sparse attention walks the blocks that are there, and stores a row that has none") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 2, .kv_seq = 3, .head_dim = 2, .causal = false};
  const Tiling t{1, 1};
  const auto pattern =
      BlockPattern::on_tiles({.kind = PatternKind::rows, .rows = {"010", "000"}}, p, t).value();
  const FollowedWalk walk(p, {.algorithm = Algorithm::block_sparse, .tiling = t, .pattern = pattern});
  CHECK(walk.lines() == lines_of(R"(
allocate O
allocate L
kernel attention 2
load Q 0
reset 0
load K 0 1
load V 0 1
scores 0 1
mask 0 1 idle
online_softmax 0 1
rescale 0 1
accumulate 0 1
discard 0 1
finish 0
store O 0
store L 0
load Q 1
reset 1
finish 1
store O 1
store L 1
)"));
}

TEST_CASE("a pattern that keeps everything, or none at all, is FlashAttention-2's walk") {
  for_every_small_shape(4, [](const Problem& p, Tiling t) {
    const auto dense = FollowedWalk(Algorithm::flash2, p, t).lines();
    const auto all = BlockPattern::on_tiles({.kind = PatternKind::strided, .size = 1}, p, t).value();
    REQUIRE(FollowedWalk(p, {.algorithm = Algorithm::block_sparse, .tiling = t, .pattern = all}).lines() ==
            dense);
    REQUIRE(FollowedWalk(Algorithm::block_sparse, p, t).lines() == dense);
  });
}

}  // namespace
}  // namespace flashsim
