// The walks without an online softmax: their order, and what they visit.
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::lines_of;

const Problem kTiny{.heads = 1, .kv_heads = 1, .seq = 4, .kv_seq = 4, .head_dim = 2, .causal = true};

TEST_CASE("three passes take the maximum, then the denominator, then the output of a query tile") {
  CHECK(FollowedWalk(Algorithm::three_pass, kTiny, {3, 2}).lines() == lines_of(R"(
allocate O
allocate L
kernel attention 2
load Q 0
reset 0
load K 0 0
scores 0 0
mask 0 0
row_maximum 0 0
discard 0 0
load K 0 1
scores 0 1
mask 0 1
row_maximum 0 1
discard 0 1
load K 0 0
scores 0 0
mask 0 0
denominator 0 0
discard 0 0
load K 0 1
scores 0 1
mask 0 1
denominator 0 1
discard 0 1
finish 0
load K 0 0
load V 0 0
scores 0 0
mask 0 0
probabilities 0 0
accumulate 0 0
discard 0 0
load K 0 1
load V 0 1
scores 0 1
mask 0 1
probabilities 0 1
accumulate 0 1
discard 0 1
store O 0
store L 0
load Q 1
reset 1
load K 1 0
scores 1 0
mask 1 0 idle
row_maximum 1 0
discard 1 0
load K 1 1
scores 1 1
mask 1 1 idle
row_maximum 1 1
discard 1 1
load K 1 0
scores 1 0
mask 1 0 idle
denominator 1 0
discard 1 0
load K 1 1
scores 1 1
mask 1 1 idle
denominator 1 1
discard 1 1
finish 1
load K 1 0
load V 1 0
scores 1 0
mask 1 0 idle
probabilities 1 0
accumulate 1 0
discard 1 0
load K 1 1
load V 1 1
scores 1 1
mask 1 1 idle
probabilities 1 1
accumulate 1 1
discard 1 1
store O 1
store L 1
)"));
}

TEST_CASE("stored, S is masked before it goes out, and the maximum is that of what was stored") {
  CHECK(FollowedWalk(Algorithm::three_pass_stored, kTiny, {4, 4}).lines() == lines_of(R"(
allocate S
allocate O
allocate L
kernel attention 1
load Q 0
reset 0
load K 0 0
scores 0 0
mask 0 0
store S 0 0
row_maximum 0 0
discard 0 0
load S 0 0
denominator 0 0
discard 0 0
finish 0
load S 0 0
load V 0 0
probabilities 0 0
accumulate 0 0
discard 0 0
store O 0
store L 0
)"));
}

TEST_CASE("memory-efficient takes chunk by chunk, none skipped, and combines the parts of a query chunk") {
  Problem p = kTiny;
  p.seq = 2;
  CHECK(FollowedWalk(Algorithm::memory_efficient, p, {1, 2}).lines() == lines_of(R"(
allocate O
allocate S
allocate P
allocate O part
allocate m part
allocate l part
kernel scores 4 in 4 launches
kernel exponentials 4 in 4 launches
kernel output 4 in 4 launches
kernel combine 2 in 2 launches
load Q 0 0
load K 0 0
scores 0 0
store S 0 0
reset 0 0
load S 0 0
mask 0 0 idle
row_maximum 0 0
denominator 0 0
store P 0 0
store m part 0 0
store l part 0 0
reset 0 0
load P 0 0
load V 0 0
accumulate 0 0
store O part 0 0
load Q 0 1
load K 0 1
scores 0 1
store S 0 1
reset 0 1
load S 0 1
mask 0 1
row_maximum 0 1
denominator 0 1
store P 0 1
store m part 0 1
store l part 0 1
reset 0 1
load P 0 1
load V 0 1
accumulate 0 1
store O part 0 1
reset 0
load m part 0 0
load m part 0 1
load l part 0 0
load O part 0 0
combine 0 0
load l part 0 1
load O part 0 1
combine 0 1
finish 0
store O 0
load Q 1 0
load K 1 0
scores 1 0
store S 1 0
reset 1 0
load S 1 0
mask 1 0 idle
row_maximum 1 0
denominator 1 0
store P 1 0
store m part 1 0
store l part 1 0
reset 1 0
load P 1 0
load V 1 0
accumulate 1 0
store O part 1 0
load Q 1 1
load K 1 1
scores 1 1
store S 1 1
reset 1 1
load S 1 1
mask 1 1 idle
row_maximum 1 1
denominator 1 1
store P 1 1
store m part 1 1
store l part 1 1
reset 1 1
load P 1 1
load V 1 1
accumulate 1 1
store O part 1 1
reset 1
load m part 1 0
load m part 1 1
load l part 1 0
load O part 1 0
combine 1 0
load l part 1 1
load O part 1 1
combine 1 1
finish 1
store O 1
)"));
}

using Pair = std::pair<std::int64_t, std::int64_t>;

TEST_CASE("each pass visits the tile pairs with a visible entry, once, and no other") {
  using enum Operation;
  for (const Algorithm algorithm : {Algorithm::three_pass, Algorithm::three_pass_stored}) {
    test::for_every_small_shape(4, [&](const Problem& p, Tiling t) {
      std::set<Pair> visible;
      for (std::int64_t row = 0; row < p.seq; ++row) {
        for (std::int64_t key = 0; key < p.kv_seq; ++key) {
          if (test::visible(p, row, key)) visible.insert({row / t.query_rows, key / t.key_rows});
        }
      }
      std::map<Operation, std::multiset<Pair>> found;
      for (const Step& step : FollowedWalk(algorithm, p, t).steps()) {
        if (step.key_tile >= 0) found[step.operation].insert({step.query_tile, step.key_tile});
      }
      const std::multiset<Pair> once(visible.begin(), visible.end());
      CAPTURE(facts_of(algorithm).name, shape_text(p), tiling_text(t));
      for (const Operation operation : {row_maximum, denominator, probabilities, accumulate}) {
        REQUIRE(found[operation] == once);
      }
      const std::size_t products = algorithm == Algorithm::three_pass ? 3 : 1;
      REQUIRE(found[scores].size() == products * once.size());
      REQUIRE(found[mask].size() == products * once.size());
    });
  }
}

TEST_CASE("inside a chunk a product reads its operands again for every tile, and a mask is the chunk's") {
  // 300 rows in chunks of 200: tiles of 128, 72 and 100. 150 keys in chunks of 140: tiles of 128, 12 and 10.
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 300, .kv_seq = 150, .head_dim = 2, .causal = true};
  const FollowedWalk walk(Algorithm::memory_efficient, p, {200, 140});
  std::set<Pair> rows, keys;
  std::map<Operand, std::int64_t> first, all;
  for (const Step& step : walk.steps()) {
    if (step.operation == Operation::scores) {
      rows.insert({step.rows.begin, step.rows.end});
      keys.insert({step.keys.begin, step.keys.end});
    }
    if (step.operation == Operation::load) {
      const std::int64_t length = step.operand == Operand::Q ? step.rows.size() : step.keys.size();
      all[step.operand] += length;
      if (!step.again) first[step.operand] += length;
    }
    // Bottom-right: row i sees i − 149 keys, so rows of the second chunk see 51 of them at least.
    if (step.operation == Operation::mask) REQUIRE_FALSE(step.idle);
  }
  CHECK(rows == std::set<Pair>{{0, 128}, {128, 200}, {200, 300}});
  CHECK(keys == std::set<Pair>{{0, 128}, {128, 140}, {140, 150}});
  CHECK(first[Operand::Q] == 2 * 300);  // once for every key chunk
  CHECK(all[Operand::Q] == 3 * 300);
  for (const Operand operand : {Operand::K, Operand::V}) {
    CHECK(first[operand] == 2 * 150);  // once for every query chunk
    CHECK(all[operand] == 3 * 150);
  }
}

}  // namespace
}  // namespace flashsim
