// What the algorithms without an online softmax move, by straight loops over rows and keys that use neither
// the walks nor the closed forms; and chunks that are larger than the tiles inside them.
#include <set>

#include "core/account/check.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

/// Numbers of one head.
struct Loops {
  Loops(const Problem& p, Tiling t) {
    std::set<std::pair<std::int64_t, std::int64_t>> visible;
    for (std::int64_t row = 0; row < p.seq; ++row) {
      for (std::int64_t key = 0; key < p.kv_seq; ++key) {
        if (test::visible(p, row, key)) visible.insert({row / t.query_rows, key / t.key_rows});
      }
    }
    for (std::int64_t row = 0; row < p.seq; ++row) {
      for (std::int64_t key = 0; key < p.kv_seq; ++key) {
        if (!visible.contains({row / t.query_rows, key / t.key_rows})) continue;
        ++visited_entries;
        if (row % t.query_rows == 0) ++visited_keys;
        if (key % t.key_rows == 0) ++visited_rows;
      }
    }
  }
  std::int64_t visited_entries = 0, visited_keys = 0, visited_rows = 0;
};

Bytes bytes(const Problem& p, std::int64_t elements, bool summed = false) {
  return Bytes(p.batch * p.heads * elements * size_of(summed ? p.accumulation() : p.storage));
}
void check_flow(Flow flow, Bytes read, Bytes written) {
  REQUIRE(flow.read == read);
  REQUIRE(flow.written == written);
}

TEST_CASE(
    "three passes load K three times and V once for every visited pair, or S twice where it is stored") {
  test::RandomShapes shapes(61);
  for (int i = 0; i < 300; ++i) {
    const auto [p, t] = shapes.next(30);
    const Loops n(p, t);
    for (const Algorithm algorithm : {Algorithm::three_pass, Algorithm::three_pass_stored}) {
      const std::int64_t stored = algorithm == Algorithm::three_pass_stored ? 1 : 0;
      const std::int64_t products = stored ? 1 : 3;
      const Tally tally = predict(algorithm, p, t).tally;
      const std::int64_t d = p.head_dim;
      check_flow(tally.hbm_of(Operand::Q), bytes(p, p.seq * d), Bytes());
      check_flow(tally.hbm_of(Operand::K), bytes(p, products * n.visited_keys * d), Bytes());
      check_flow(tally.hbm_of(Operand::V), bytes(p, n.visited_keys * d), Bytes());
      check_flow(tally.hbm_of(Operand::S), bytes(p, 2 * stored * n.visited_entries),
                 bytes(p, stored * n.visited_entries));
      check_flow(tally.hbm_of(Operand::P), Bytes(), Bytes());
      check_flow(tally.hbm_of(Operand::O), Bytes(), bytes(p, p.seq * d));
      check_flow(tally.hbm_of(Operand::L), Bytes(), bytes(p, p.seq, true));
      check_flow(tally.sm_total(), tally.hbm_total().read, tally.hbm_total().written);
      using enum Operation;
      const Bytes entries = bytes(p, n.visited_entries);
      const Bytes accumulators = bytes(p, n.visited_rows * d, true);
      check_flow(tally.sram_of(scores), bytes(p, products * (n.visited_rows + n.visited_keys) * d),
                 bytes(p, products * n.visited_entries));
      check_flow(tally.sram_of(row_maximum), entries, Bytes());
      check_flow(tally.sram_of(denominator), entries, Bytes());
      check_flow(tally.sram_of(probabilities), entries, entries);
      check_flow(tally.sram_of(accumulate), entries + bytes(p, n.visited_keys * d) + accumulators,
                 accumulators);
      check_flow(tally.sram_of(load), Bytes(), tally.hbm_total().read);
      check_flow(tally.sram_of(store), tally.hbm_total().written, Bytes());
      check_flow(tally.sram_of(finish), Bytes(), Bytes());
    }
  }
}

TEST_CASE("without a mask the recurrence saves half of K and V, as it does of Q Kᵀ") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 64, .kv_seq = 64, .head_dim = 16, .causal = false};
  const Tally three = predict(Algorithm::three_pass, p, {16, 16}).tally;
  const Tally one = predict(Algorithm::flash2, p, {16, 16}).tally;
  CHECK(three.hbm_of(Operand::K).read == one.hbm_of(Operand::K).read * Count(3));
  CHECK(three.work.products == one.work.products * Count(2));
  CHECK(three.work.exponentials == Count(2 * 64 * 64));
}

/// Shapes whose chunks hold several tiles, ragged or not.
template <class Look>
void for_chunks(int shapes, Look look) {
  test::RandomShapes random(71);
  const std::int64_t sizes[]{1, 100, 127, 128, 129, 200, 256, 300, 385, 1000};
  for (int i = 0; i < shapes; ++i) {
    Problem p = random.next(20).problem;
    const auto size = [&](int step) { return sizes[static_cast<std::size_t>(i * step + i / 7) % 10]; };
    p.seq = size(3) + i % 3;
    p.kv_seq = size(7) + i % 2;
    look(p, Tiling{size(1), size(9)});
  }
}

TEST_CASE("predicted equals counted for chunks of several tiles") {
  int several = 0;
  for_chunks(200, [&](const Problem& p, Tiling t) {
    Ledger ledger(p);
    const Method method{.algorithm = Algorithm::memory_efficient, .tiling = t};
    walk(p, method, ledger);
    const Tally predicted = predict(p, method).tally;
    CAPTURE(shape_text(p), tiling_text(t));
    for (const Discrepancy& d : discrepancies(predicted, ledger.times(walks_of(p, method)))) FAIL(d.figure);
    several += p.seq > 128 && t.query_rows > 128 && p.kv_seq > 128 && t.key_rows > 128 ? 1 : 0;
  });
  CHECK(several > 20);
}

TEST_CASE(
    "memory-efficient brings Q for every tile of keys in its chunks, and K and V for every tile of rows") {
  for_chunks(60, [](const Problem& p, Tiling t) {
    // A tile starts where its chunk does, or 128 further on.
    const auto tiles = [](std::int64_t length, std::int64_t chunk) {
      std::int64_t n = 0;
      for (std::int64_t x = 0; x < length; ++x) n += x % chunk % 128 == 0 ? 1 : 0;
      return n;
    };
    const auto chunks = [](std::int64_t length, std::int64_t chunk) {
      std::int64_t n = 0;
      for (std::int64_t x = 0; x < length; ++x) n += x % chunk == 0 ? 1 : 0;
      return n;
    };
    const std::int64_t d = p.head_dim;
    const std::int64_t key_chunks = chunks(p.kv_seq, t.key_rows);
    const std::int64_t query_chunks = chunks(p.seq, t.query_rows);
    const Tally tally = predict(Algorithm::memory_efficient, p, t).tally;
    const Bytes matrix = bytes(p, p.seq * p.kv_seq);
    check_flow(tally.hbm_of(Operand::Q), bytes(p, key_chunks * p.seq * d), Bytes());
    check_flow(tally.hbm_of(Operand::S), matrix, matrix);
    check_flow(tally.hbm_of(Operand::P), matrix, matrix);
    check_flow(tally.hbm_of(Operand::O), Bytes(), bytes(p, p.seq * d));
    check_flow(tally.hbm_of(Operand::L), Bytes(), Bytes());
    const Bytes parts = bytes(p, key_chunks * p.seq * d, true);
    check_flow(tally.hbm_of(Operand::O_part), parts, parts);
    const Bytes statistics = bytes(p, key_chunks * p.seq, true);
    check_flow(tally.hbm_of(Operand::m_part), statistics, statistics);
    check_flow(tally.hbm_of(Operand::l_part), statistics, statistics);
    REQUIRE(tally.sm_of(Operand::Q).read == bytes(p, tiles(p.kv_seq, t.key_rows) * p.seq * d));
    for (const Operand operand : {Operand::K, Operand::V}) {
      check_flow(tally.hbm_of(operand), bytes(p, query_chunks * p.kv_seq * d), Bytes());
      REQUIRE(tally.sm_of(operand).read == bytes(p, tiles(p.seq, t.query_rows) * p.kv_seq * d));
    }
    REQUIRE(tally.kernels.size() == 4);
    REQUIRE(tally.kernels[0].launches == Count(query_chunks * key_chunks));
    REQUIRE(tally.kernels[3].launches == Count(query_chunks));
  });
}

TEST_CASE("chunks bring memory down and not traffic") {
  const Problem p;
  const Tally chunked = predict(Algorithm::memory_efficient, p, {1024, 4096}).tally;
  const Tally standard = predict(Algorithm::standard, p, {}).tally;
  CHECK(chunked.hbm_total().total() > standard.hbm_total().total());
  CHECK(chunked.peak_allocated * Count(4) < standard.peak_allocated);
}

}  // namespace
}  // namespace flashsim
