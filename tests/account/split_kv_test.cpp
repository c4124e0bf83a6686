// Split-kv's account worked out by straight loops over rows, keys and parts, and against the formula of its
// extra traffic.
#include <algorithm>
#include <set>
#include <utility>

#include "core/account/occupancy.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

Method method(Tiling tiling, std::int64_t splits) {
  return {.algorithm = Algorithm::split_kv, .tiling = tiling, .splits = splits};
}

/// Plain integers for one key/value head.
struct Loops {
  Loops(const Problem& p, Tiling t, std::int64_t splits) {
    const std::int64_t group = p.heads / p.kv_heads;
    const std::int64_t key_tiles = (p.kv_seq + t.key_rows - 1) / t.key_rows;
    const std::int64_t tiles_a_part = (key_tiles + splits - 1) / splits;
    std::set<std::pair<std::int64_t, std::int64_t>> pairs, parts;
    for (std::int64_t query = 0; query < p.seq; ++query) {
      for (std::int64_t head = 0; head < group; ++head) {
        for (std::int64_t key = 0; key < p.kv_seq; ++key) {
          if (!test::visible(p, query, key)) continue;
          const std::int64_t i = (query * group + head) / t.query_rows;
          pairs.insert({i, key / t.key_rows});
          parts.insert({i, key / t.key_rows / tiles_a_part});
        }
      }
    }
    const auto length = [](std::int64_t tile, std::int64_t size, std::int64_t all) {
      return std::min((tile + 1) * size, all) - tile * size;
    };
    for (const auto& [i, j] : pairs) {
      keys += length(j, t.key_rows, p.kv_seq);
      entries += length(j, t.key_rows, p.kv_seq) * length(i, t.query_rows, p.seq * group);
    }
    for (const auto& [i, part] : parts) queries += length(i, t.query_rows, p.seq * group);
  }
  std::int64_t keys = 0, entries = 0, queries = 0;
};

template <class Look>
void for_many_shapes(Look look) {
  test::for_every_small_shape(3, [&](Problem p, Tiling t) {
    for (p.heads = 1; p.heads <= 3; p.heads += 2) look(p, t);
  });
  test::RandomShapes shapes(41);
  for (int n = 0; n < 150; ++n) {
    const test::Shape shape = shapes.next(16);
    INFO(text_of(shape));
    look(shape.problem, shape.tiling);
  }
}

TEST_CASE("each key/value head crosses once for a packed query tile, and queries once for a part that sees") {
  for_many_shapes([](const Problem& p, Tiling t) {
    for (const std::int64_t splits : {2, 7}) {
      const Loops n(p, t, splits);
      const Tally tally = predict(p, method(t, splits)).tally;
      const std::int64_t walks = p.batch * p.kv_heads;
      const std::int64_t e = size_of(p.storage);
      REQUIRE(tally.hbm_of(Operand::Q).read == Bytes(walks * n.queries * p.head_dim * e));
      REQUIRE(tally.hbm_of(Operand::K).read == Bytes(walks * n.keys * p.head_dim * e));
      REQUIRE(tally.hbm_of(Operand::V).read == Bytes(walks * n.keys * p.head_dim * e));
      REQUIRE(tally.work.products == Flops(walks * 4 * n.entries * p.head_dim));
      REQUIRE(tally.hbm_of(Operand::O).written == whole_size(Operand::O, p));
      REQUIRE(tally.hbm_of(Operand::L).written == whole_size(Operand::L, p));
    }
  });
}

TEST_CASE("the parts move 2·S·a·B·H·N·(d + 1) bytes more, and take half of it in memory") {
  for_many_shapes([](const Problem& p, Tiling t) {
    for (const std::int64_t splits : {2, 5}) {
      const Prediction split = predict(p, method(t, splits));
      const std::int64_t a = size_of(p.accumulation());
      const Bytes parts(splits * a * p.batch * p.heads * p.seq * (p.head_dim + 1));
      Flow moved = split.tally.hbm_of(Operand::O_part);
      moved += split.tally.hbm_of(Operand::L_part);
      REQUIRE(moved.read == parts);
      REQUIRE(moved.written == parts);
      REQUIRE(split.tally.peak_allocated == whole_size(Operand::O, p) + whole_size(Operand::L, p) + parts);
      REQUIRE(total_size(split.intermediate) == split.tally.peak_allocated);
    }
  });
}

TEST_CASE("one part of heads of their own is FlashAttention-2's account") {
  test::RandomShapes shapes(42);
  for (int n = 0; n < 200; ++n) {
    test::Shape shape = shapes.next(30);
    shape.problem.kv_heads = shape.problem.heads;
    const auto ours = figures_of(predict(shape.problem, method(shape.tiling, 1)).tally);
    const auto flash2 = figures_of(predict(Algorithm::flash2, shape.problem, shape.tiling).tally);
    REQUIRE(ours.size() == flash2.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CAPTURE(text_of(shape), ours[i].name);
      REQUIRE(ours[i].name == flash2[i].name);
      REQUIRE(ours[i].value == flash2[i].value);
    }
  }
}

TEST_CASE("a decoding step reads its cache once, whatever the parts and the group") {
  const Problem p{.heads = 32, .kv_heads = 8, .seq = 1, .kv_seq = 65536};
  const Bytes cache = whole_size(Operand::K, p) + whole_size(Operand::V, p);
  for (const std::int64_t splits : {1, 12, 64}) {
    const Tally tally = predict(p, method({16, 128}, splits)).tally;
    CHECK(tally.hbm_of(Operand::K).read + tally.hbm_of(Operand::V).read == cache);
    CHECK(tally.kernels.front().blocks == Count(8 * splits));
  }
  const Tally apart = predict(Algorithm::flash2, p, {16, 128}).tally;
  CHECK(apart.hbm_of(Operand::K).read + apart.hbm_of(Operand::V).read == cache * Count(4));
}

TEST_CASE("the combine kernel keeps a part and the sum in registers, and nothing in shared memory") {
  const Problem p{.heads = 1, .kv_heads = 1, .head_dim = 64};
  const Footprint footprint = footprint_of(Algorithm::split_kv, "combine", p, {16, 128});
  CHECK(footprint.shared_total() == Bytes());
  CHECK(footprint.register_total() == Bytes(16 * 64 * 4 * 2 + 2 * 16 * 4));
}

TEST_CASE("combining costs 2·d + 2 FLOPs and an exponential a row of a part") {
  const Problem p{.heads = 2, .kv_heads = 1, .seq = 3, .kv_seq = 8, .head_dim = 5, .causal = false};
  const Tiling t{4, 2};
  const Work one = predict(p, method(t, 1)).tally.work;
  const Work three = predict(p, method(t, 3)).tally.work;
  CHECK(three.rescale == one.rescale + Flops(3 * 6 * (2 * 5 + 2)));
  CHECK(three.exponentials == one.exponentials + Count(3 * 6));
  CHECK(three.normalise == one.normalise + Flops(3 * 6 * (5 + 1)));
  CHECK(three.products == one.products);
}

}  // namespace
}  // namespace flashsim
