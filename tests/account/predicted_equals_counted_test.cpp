// The closed forms against the ledger, on every figure.
#include <string>

#include <nlohmann/json.hpp>

#include "core/account/check.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_pattern.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"

namespace flashsim {
namespace {

Tally counted(const Problem& problem, const Method& method) {
  Ledger ledger(problem);
  walk(problem, method, ledger);
  return ledger.times(walks_of(problem, method));
}

/// What differs, as text: empty where nothing does.
std::string differences(const Problem& problem, const Method& method) {
  std::string text;
  for (const Discrepancy& d : discrepancies(predict(problem, method).tally, counted(problem, method))) {
    text += fmt::format("{}: predicted {}, counted {}\n", d.figure, d.predicted.value(), d.counted.value());
  }
  return text;
}

TEST_CASE("predicted equals counted on every figure, for every small shape") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    test::for_every_small_shape(5, [&](const Problem& p, Tiling t) {
      CAPTURE(facts.name, shape_text(p), p.causal, name_of(p.alignment), tiling_text(t));
      REQUIRE(differences(p, {.algorithm = facts.algorithm, .tiling = t}).empty());
    });
  }
}

TEST_CASE("predicted equals counted on every figure, for random shapes") {
  test::RandomShapes shapes(3);
  for (int n = 0; n < 3000; ++n) {
    const test::Shape shape = shapes.next(n % 10 == 0 ? 120 : 40);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      CAPTURE(facts.name, text_of(shape));
      REQUIRE(differences(shape.problem, {.algorithm = facts.algorithm, .tiling = shape.tiling}).empty());
    }
  }
}

TEST_CASE("predicted equals counted on every figure, for every small shape in groups and parts") {
  test::for_every_small_shape(3, [&](Problem p, Tiling t) {
    for (p.heads = 2; p.heads <= 3; ++p.heads) {
      for (const std::int64_t splits : {1, 2, 4}) {
        CAPTURE(shape_text(p), p.causal, name_of(p.alignment), tiling_text(t), splits);
        REQUIRE(differences(p, {.algorithm = Algorithm::split_kv, .tiling = t, .splits = splits}).empty());
      }
    }
  });
}

TEST_CASE("predicted equals counted on every figure, for random shapes in any number of parts") {
  test::RandomShapes shapes(31);
  test::RandomPatterns patterns(32);
  for (int n = 0; n < 500; ++n) {
    const test::Shape shape = shapes.next(n % 10 == 0 ? 120 : 40);
    const std::int64_t splits = patterns.from_to(1, n % 5 == 0 ? 150 : 9);
    CAPTURE(text_of(shape), splits);
    REQUIRE(differences(shape.problem,
                        {.algorithm = Algorithm::split_kv, .tiling = shape.tiling, .splits = splits})
                .empty());
  }
}

TEST_CASE("predicted equals counted on every figure, for random shapes under any pattern of blocks") {
  test::RandomShapes shapes(33);
  test::RandomPatterns patterns(34);
  for (int n = 0; n < 800; ++n) {
    const test::Shape shape = shapes.next(n % 10 == 0 ? 120 : 40);
    const Method method{.algorithm = Algorithm::block_sparse,
                        .tiling = shape.tiling,
                        .pattern = patterns.next(shape.problem, shape.tiling)};
    CAPTURE(text_of(shape), pattern_json(method.pattern->request()).dump());
    REQUIRE(differences(shape.problem, method).empty());
  }
}

TEST_CASE("the random shapes hold every kind that matters") {
  test::RandomShapes shapes(3);
  int longer_queries = 0, longer_keys = 0, square = 0, top_left = 0, grouped = 0, ragged = 0, huge_tiles = 0,
      one_row_tiles = 0, one_query = 0, one_key = 0, depth_one = 0, not_causal = 0, empty_rows = 0,
      double_storage = 0;
  for (int n = 0; n < 3000; ++n) {
    const auto [p, t] = shapes.next(n % 10 == 0 ? 120 : 40);
    longer_queries += p.seq > p.kv_seq;
    longer_keys += p.seq < p.kv_seq;
    square += p.seq == p.kv_seq;
    top_left += p.causal && p.alignment == CausalAlignment::top_left;
    grouped += p.heads > p.kv_heads;
    ragged += p.seq % t.query_rows != 0 && p.kv_seq % t.key_rows != 0;
    huge_tiles += t.query_rows > p.seq && t.key_rows > p.kv_seq;
    one_row_tiles += t.query_rows == 1 || t.key_rows == 1;
    one_query += p.seq == 1;
    one_key += p.kv_seq == 1;
    depth_one += p.head_dim == 1;
    not_causal += !p.causal;
    empty_rows += p.causal && p.alignment == CausalAlignment::bottom_right && p.seq > p.kv_seq;
    double_storage += p.storage == NumberType::fp64;
  }
  for (const int kind :
       {longer_queries, longer_keys, square, top_left, grouped, ragged, huge_tiles, one_row_tiles, one_query,
        one_key, depth_one, not_causal, empty_rows, double_storage}) {
    CHECK(kind >= 100);
  }
}

}  // namespace
}  // namespace flashsim
