// Block-sparse attention's account worked out by straight loops over rows and keys.
#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_pattern.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

Method method(Tiling tiling, std::shared_ptr<const BlockPattern> pattern) {
  return {.algorithm = Algorithm::block_sparse, .tiling = tiling, .pattern = std::move(pattern)};
}

TEST_CASE("what is moved, computed, kept and visible is what loops over pairs and blocks find") {
  test::RandomShapes shapes(51);
  test::RandomPatterns patterns(52);
  for (int n = 0; n < 400; ++n) {
    const auto [p, t] = shapes.next(18);
    const auto pattern = patterns.next(p, t);
    CAPTURE(shape_text(p), p.causal, name_of(p.alignment), tiling_text(t),
            pattern_json(pattern->request()).dump());
    std::set<std::pair<std::int64_t, std::int64_t>> kept, visited, dense;
    std::int64_t visible = 0;
    for (std::int64_t row = 0; row < p.seq; ++row) {
      for (std::int64_t key = 0; key < p.kv_seq; ++key) {
        const std::pair block{row / t.query_rows, key / t.key_rows};
        const bool there = pattern->has(block.first, block.second);
        if (there) kept.insert(block);
        if (!test::visible(p, row, key)) continue;
        dense.insert(block);
        if (!there) continue;
        visited.insert(block);
        ++visible;
      }
    }
    std::int64_t keys = 0, entries = 0;
    for (const auto& [i, j] : visited) {
      const std::int64_t rows = std::min((i + 1) * t.query_rows, p.seq) - i * t.query_rows;
      const std::int64_t length = std::min((j + 1) * t.key_rows, p.kv_seq) - j * t.key_rows;
      keys += length;
      entries += rows * length;
    }
    const Prediction prediction = predict(p, method(t, pattern));
    const Tally& tally = prediction.tally;
    const std::int64_t heads = p.batch * p.heads;
    const std::int64_t e = size_of(p.storage);
    REQUIRE(tally.hbm_of(Operand::Q).read == Bytes(heads * p.seq * p.head_dim * e));
    REQUIRE(tally.hbm_of(Operand::K).read == Bytes(heads * keys * p.head_dim * e));
    REQUIRE(tally.hbm_of(Operand::V).read == Bytes(heads * keys * p.head_dim * e));
    REQUIRE(tally.hbm_total().written == whole_size(Operand::O, p) + whole_size(Operand::L, p));
    REQUIRE(tally.work.products == Flops(heads * 4 * entries * p.head_dim));
    REQUIRE(problem_flops(p, method(t, pattern)).exact.value() == Count(heads * 4 * visible * p.head_dim));
    REQUIRE(problem_flops(p, method(t, pattern)).paper.value() == problem_flops(p).paper.value());
    REQUIRE(prediction.pattern);
    REQUIRE(prediction.pattern->kept == Count(static_cast<std::int64_t>(kept.size())));
    REQUIRE(prediction.pattern->dense == Count(static_cast<std::int64_t>(dense.size())));
    REQUIRE(prediction.tile_pairs.visited == Count(static_cast<std::int64_t>(visited.size())));
  }
}

TEST_CASE("a window of the whole sequence, and a stride of one, are FlashAttention-2's account") {
  test::RandomShapes shapes(53);
  for (int n = 0; n < 200; ++n) {
    const auto [p, t] = shapes.next(30);
    for (const PatternRequest& all : {PatternRequest{.kind = PatternKind::window, .size = 100},
                                      PatternRequest{.kind = PatternKind::strided, .size = 1}}) {
      const Method sparse = method(t, BlockPattern::on_tiles(all, p, t).value());
      const auto ours = figures_of(predict(p, sparse).tally);
      const auto flash2 = figures_of(predict(Algorithm::flash2, p, t).tally);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(shape_text(p), ours[i].name);
        REQUIRE(ours[i].value == flash2[i].value);
      }
      REQUIRE(problem_flops(p, sparse).exact.value() == problem_flops(p).exact.value());
    }
  }
}

TEST_CASE("traffic falls with the fraction of blocks that are there") {
  const Problem p{.heads = 1, .kv_heads = 1, .causal = false};
  const Tiling t{128, 128};
  const auto window = BlockPattern::on_tiles({.kind = PatternKind::window, .size = 1024}, p, t).value();
  const Prediction sparse = predict(p, method(t, window));
  const Tally dense = predict(Algorithm::flash2, p, t).tally;
  // 17 of 64 tiles a row, fewer at the ends: eight to each side and its own.
  CHECK(sparse.pattern->kept == Count(17 * 64 - 2 * 36));
  CHECK(ratio(sparse.tally.hbm_of(Operand::K).read, dense.hbm_of(Operand::K).read) ==
        Approx(sparse.pattern->fraction()));
}

}  // namespace
}  // namespace flashsim
