// Which rows stand for all: always the same, always the first and the last, and never over the budget.
#include "core/attention/row_sample.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/problem/mask.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

double products_of(const Problem& problem, const RowSample& sample) {
  double products = 0;
  for (const RowPlace& place : sample.rows) {
    products += static_cast<double>(visible_keys(problem, place.row) * problem.head_dim);
  }
  return products;
}

bool has(const RowSample& sample, const RowPlace& place) {
  return std::binary_search(sample.rows.begin(), sample.rows.end(), place);
}

TEST_CASE("a budget that covers everything checks every row once") {
  const Problem problem{.batch = 2, .heads = 4, .kv_heads = 2, .seq = 5, .kv_seq = 7, .head_dim = 16};
  const RowSample rows = sample_query_rows(problem, {}, 1e9);
  CHECK(rows.whole());
  CHECK(rows.of == 40);
  CHECK(rows.note.empty());
  CHECK(std::is_sorted(rows.rows.begin(), rows.rows.end()));
  const RowSample keys = sample_key_rows(problem, 1e9);
  CHECK(keys.whole());
  CHECK(keys.of == 28);
}

TEST_CASE("a sample has the first and the last rows, those at tile edges, and a spread within the budget") {
  for (const bool causal : {false, true}) {
    const Problem problem{
        .batch = 2, .heads = 8, .kv_heads = 8, .seq = 4096, .kv_seq = 4096, .head_dim = 64, .causal = causal};
    const double budget = 2e8;
    const RowSample sample = sample_query_rows(problem, {128, 64}, budget);
    CHECK_FALSE(sample.whole());
    CHECK(std::is_sorted(sample.rows.begin(), sample.rows.end()));
    CHECK(std::adjacent_find(sample.rows.begin(), sample.rows.end()) == sample.rows.end());
    for (const RowPlace& head : {RowPlace{0, 0, 0}, RowPlace{1, 7, 0}}) {
      for (const std::int64_t row : {0, 127, 128, 3967, 3968, 4095}) {
        CHECK(has(sample, {head.batch, head.head, row}));
      }
    }
    CHECK(products_of(problem, sample) <= budget);
    CHECK(products_of(problem, sample) > 0.9 * budget);
    std::set<std::pair<std::int64_t, std::int64_t>> heads;
    std::set<std::int64_t> sixteenths;
    for (const RowPlace& place : sample.rows) {
      heads.insert({place.batch, place.head});
      sixteenths.insert(place.row / 256);
    }
    CHECK(heads.size() == 16);
    CHECK(sixteenths.size() == 16);
    CHECK(sample_query_rows(problem, {128, 64}, budget).rows == sample.rows);
    CHECK(sample.note == fmt::format("{} of 65536 rows: the first and the last, tile edges, and a spread",
                                     sample.rows.size()));
  }
}

TEST_CASE("the first and the last rows are checked whatever they take") {
  const Problem problem{
      .heads = 2, .kv_heads = 2, .seq = 100, .kv_seq = 100, .head_dim = 16, .causal = false};
  const RowSample sample = sample_query_rows(problem, {16, 16}, 1);
  CHECK(sample.rows == std::vector<RowPlace>{{0, 0, 0}, {0, 0, 99}, {0, 1, 0}, {0, 1, 99}});
}

TEST_CASE("of a causal problem the last keys are checked, which few queries see") {
  const Problem problem{.heads = 8, .kv_heads = 4, .seq = 1024, .kv_seq = 1024, .head_dim = 64};
  // Rows and keys cost alike: two heads of two query heads each, 100 rows of about 1000 keys.
  const RowSample keys = sample_key_rows(problem, 2.0 * 4 * 100 * 1000 * 64);
  CHECK_FALSE(keys.whole());
  CHECK(has(keys, {0, 0, 1023}));
  CHECK(has(keys, {0, 3, 1023}));
  CHECK_FALSE(has(keys, {0, 1, 1023}));
  CHECK(keys.rows.size() >= 2 * 100);
  CHECK(keys.rows.size() <= 2 * 105);
  CHECK(keys.note == fmt::format("{} of 4096 keys: the last of the first and of the last key/value head",
                                 keys.rows.size()));
  // Enough for one head and not for two.
  CHECK(sample_key_rows(problem, 2.0 * 3 * 1024 * 64).note ==
        "1 of 4096 keys: the last of the first key/value head");
}

TEST_CASE("without a mask some keys of one head are checked, or none with the reason") {
  const Problem problem{
      .heads = 4, .kv_heads = 4, .seq = 256, .kv_seq = 512, .head_dim = 32, .causal = false};
  const double head = 256.0 * 512 * 32;
  const RowSample keys = sample_key_rows(problem, head + 10 * 256 * 32);
  CHECK(keys.rows.size() == 10);
  CHECK(keys.rows.front() == RowPlace{0, 0, 0});
  CHECK(keys.rows.back() == RowPlace{0, 0, 511});
  CHECK(keys.note == "10 of 2048 keys: of the first key/value head");
  const RowSample none = sample_key_rows(problem, head / 2);
  CHECK(none.rows.empty());
  CHECK_FALSE(none.whole());
  CHECK(
      none.note ==
      "dK and dV weren't checked: those of one key need every query that sees it, more than 2.1e+06 products "
      "of a pair and d");
}

}  // namespace
}  // namespace flashsim
