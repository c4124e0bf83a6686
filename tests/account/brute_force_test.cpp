// The account's rules worked out a third time, by straight loops over rows and keys that use neither the
// walks nor the closed forms.

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::RandomShapes;
using test::Shape;

/// Plain integers for one head, in elements and entries.
struct Loops {
  Loops(const Problem& p, Tiling t) : problem(p), tiling(t) {
    for (std::int64_t row = 0; row < p.seq; ++row) {
      for (std::int64_t key = 0; key < p.kv_seq; ++key) {
        visible += test::visible(p, row, key) ? 1 : 0;
        visited_entries += visits(row, key) ? 1 : 0;
        masked_entries += visits(row, key) && has_masked(row, key) ? 1 : 0;
        masked_of_all += has_masked(row, key) ? 1 : 0;
        // Each row of a tile is counted at the tile's first key, each key at the tile's first row.
        if (visits(row, key) && key % t.key_rows == 0) ++visited_rows;
        if (visits(row, key) && row % t.query_rows == 0) ++visited_keys;
        if (row % t.query_rows == 0) ++keys_for_every_tile;
        if (key % t.key_rows == 0) ++rows_for_every_tile;
      }
    }
    for (std::int64_t key = 0; key < p.kv_seq; ++key) {
      bool reached = false;
      for (std::int64_t row = 0; row < p.seq; ++row) reached = reached || visits(row, key);
      reached_keys += reached ? 1 : 0;
    }
  }

  /// The tile of (row, key) holds a visible pair.
  [[nodiscard]] bool visits(std::int64_t row, std::int64_t key) const { return holds(row, key, true); }
  /// The tile of (row, key) holds a masked pair.
  [[nodiscard]] bool has_masked(std::int64_t row, std::int64_t key) const { return holds(row, key, false); }
  [[nodiscard]] bool holds(std::int64_t row, std::int64_t key, bool wanted) const {
    for (std::int64_t r = 0; r < problem.seq; ++r) {
      if (r / tiling.query_rows != row / tiling.query_rows) continue;
      for (std::int64_t k = 0; k < problem.kv_seq; ++k) {
        if (k / tiling.key_rows == key / tiling.key_rows && test::visible(problem, r, k) == wanted)
          return true;
      }
    }
    return false;
  }

  Problem problem;
  Tiling tiling;
  std::int64_t visible = 0, visited_entries = 0, masked_entries = 0, masked_of_all = 0;
  std::int64_t visited_rows = 0, visited_keys = 0, reached_keys = 0;
  std::int64_t rows_for_every_tile = 0, keys_for_every_tile = 0;
};

/// Bytes of all heads, from elements of one.
Bytes stored(const Problem& p, std::int64_t elements) {
  return Bytes(p.batch * p.heads * elements * size_of(p.storage));
}
Bytes summed(const Problem& p, std::int64_t elements) {
  return Bytes(p.batch * p.heads * elements * (p.storage == NumberType::fp64 ? 8 : 4));
}

/// Small shapes of every kind, and random ones.
template <class Look>
void for_many_shapes(Look look) {
  test::for_every_small_shape(4, look);
  RandomShapes shapes(4);
  for (int n = 0; n < 300; ++n) {
    const Shape shape = shapes.next(14);
    INFO(text_of(shape));
    look(shape.problem, shape.tiling);
  }
}

void check_flow(const Flow& flow, Bytes read, Bytes written) {
  REQUIRE(flow.read == read);
  REQUIRE(flow.written == written);
}

TEST_CASE("flash2 moves Q, O and L once, and K and V once for every query tile that visits them") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const Tally tally = predict(Algorithm::flash2, p, t).tally;
    const std::int64_t d = p.head_dim;
    check_flow(tally.hbm_of(Operand::Q), stored(p, p.seq * d), Bytes());
    check_flow(tally.hbm_of(Operand::K), stored(p, n.visited_keys * d), Bytes());
    check_flow(tally.hbm_of(Operand::V), stored(p, n.visited_keys * d), Bytes());
    check_flow(tally.hbm_of(Operand::O), Bytes(), stored(p, p.seq * d));
    check_flow(tally.hbm_of(Operand::L), Bytes(), summed(p, p.seq));
    check_flow(tally.hbm_total(), stored(p, p.seq * d + 2 * n.visited_keys * d),
               stored(p, p.seq * d) + summed(p, p.seq));
  });
}

TEST_CASE("flash1 moves K and V once if they are visited, and its rows' state for every visited pair") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const Tally tally = predict(Algorithm::flash1, p, t).tally;
    const std::int64_t d = p.head_dim;
    check_flow(tally.hbm_of(Operand::Q), stored(p, n.visited_rows * d), Bytes());
    check_flow(tally.hbm_of(Operand::K), stored(p, n.reached_keys * d), Bytes());
    check_flow(tally.hbm_of(Operand::V), stored(p, n.reached_keys * d), Bytes());
    check_flow(tally.hbm_of(Operand::O), stored(p, n.visited_rows * d), stored(p, n.visited_rows * d));
    check_flow(tally.hbm_of(Operand::l), summed(p, n.visited_rows), summed(p, n.visited_rows));
    check_flow(tally.hbm_of(Operand::m), summed(p, n.visited_rows), summed(p, n.visited_rows));
    check_flow(tally.initial_of(Operand::O), Bytes(), stored(p, p.seq * d));
    check_flow(tally.initial_of(Operand::l), Bytes(), summed(p, p.seq));
    check_flow(tally.initial_of(Operand::m), Bytes(), summed(p, p.seq));
    check_flow(tally.hbm_total(),
               stored(p, 2 * n.visited_rows * d + 2 * n.reached_keys * d) + summed(p, 2 * n.visited_rows),
               stored(p, (n.visited_rows + p.seq) * d) + summed(p, 2 * (n.visited_rows + p.seq)));
  });
}

TEST_CASE("for flash what crosses into the SMs is HBM traffic, the starting values included") {
  for_many_shapes([](const Problem& p, Tiling t) {
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
      const Tally tally = predict(algorithm, p, t).tally;
      for (const Operand operand : kOperands) {
        check_flow(tally.sm_of(operand), tally.hbm_of(operand).read,
                   tally.hbm_of(operand).written + tally.initial_of(operand).written);
      }
      check_flow(tally.sm_total(), tally.hbm_total().read, tally.hbm_total().written);
    }
  });
}

TEST_CASE("standard and eager read each operand of a kernel once and write its result once, masked or not") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const std::int64_t d = p.head_dim;
    const Bytes matrix = stored(p, p.seq * p.kv_seq);
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      const std::int64_t passes = algorithm == Algorithm::standard ? 0 : p.causal ? 2 : 1;
      const Tally tally = predict(algorithm, p, t).tally;
      check_flow(tally.hbm_of(Operand::Q), stored(p, p.seq * d), Bytes());
      check_flow(tally.hbm_of(Operand::K), stored(p, p.kv_seq * d), Bytes());
      check_flow(tally.hbm_of(Operand::V), stored(p, p.kv_seq * d), Bytes());
      check_flow(tally.hbm_of(Operand::S), matrix * Count(1 + passes), matrix * Count(1 + passes));
      check_flow(tally.hbm_of(Operand::P), matrix, matrix);
      check_flow(tally.hbm_of(Operand::O), Bytes(), stored(p, p.seq * d));
      check_flow(tally.hbm_of(Operand::L), Bytes(), Bytes());
    }
  });
}

TEST_CASE("into the SMs standard and eager bring Q for every key tile, and K and V for every query tile") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      const Tally tally = predict(algorithm, p, t).tally;
      REQUIRE(tally.sm_of(Operand::Q).read == stored(p, n.rows_for_every_tile * p.head_dim));
      REQUIRE(tally.sm_of(Operand::K).read == stored(p, n.keys_for_every_tile * p.head_dim));
      REQUIRE(tally.sm_of(Operand::V).read == stored(p, n.keys_for_every_tile * p.head_dim));
      for (const Operand operand : {Operand::S, Operand::P, Operand::O}) {
        check_flow(tally.sm_of(operand), tally.hbm_of(operand).read, tally.hbm_of(operand).written);
      }
    }
  });
}

TEST_CASE("on the chip every operation of flash reads its operand tiles once and writes its result once") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t d = p.head_dim;
    const Bytes entries = stored(p, n.visited_entries);
    const Bytes masked = stored(p, n.masked_entries);
    const Bytes accumulators = summed(p, n.visited_rows * d);
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
      const Tally tally = predict(algorithm, p, t).tally;
      using enum Operation;
      check_flow(tally.sram_of(scores), stored(p, (n.visited_rows + n.visited_keys) * d), entries);
      check_flow(tally.sram_of(mask), masked, masked);
      check_flow(tally.sram_of(online_softmax), entries, entries);
      check_flow(tally.sram_of(rescale), accumulators, accumulators);
      check_flow(tally.sram_of(accumulate), entries + stored(p, n.visited_keys * d) + accumulators,
                 accumulators);
      check_flow(tally.sram_of(load), Bytes(), tally.hbm_total().read);
      Bytes written = tally.hbm_total().written;
      for (const Operand operand : kOperands) written = written - tally.initial_of(operand).written;
      check_flow(tally.sram_of(store), written, Bytes());
      check_flow(tally.sram_of(scale), Bytes(), Bytes());
      check_flow(tally.sram_of(softmax), Bytes(), Bytes());
    }
  });
}

TEST_CASE("on the chip standard and eager work on the full matrix") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t d = p.head_dim;
    const Bytes matrix = stored(p, p.seq * p.kv_seq);
    const Bytes accumulators = summed(p, n.rows_for_every_tile * d);
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      const Tally tally = predict(algorithm, p, t).tally;
      using enum Operation;
      check_flow(tally.sram_of(scores), stored(p, (n.rows_for_every_tile + n.keys_for_every_tile) * d),
                 matrix);
      check_flow(tally.sram_of(mask), stored(p, n.masked_of_all), stored(p, n.masked_of_all));
      check_flow(tally.sram_of(softmax), matrix, matrix);
      check_flow(tally.sram_of(accumulate), matrix + stored(p, n.keys_for_every_tile * d) + accumulators,
                 accumulators);
      const bool eager = algorithm == Algorithm::eager;
      check_flow(tally.sram_of(scale), eager ? matrix : Bytes(), eager ? matrix : Bytes());
      check_flow(tally.sram_of(load), Bytes(), tally.sm_total().read);
      check_flow(tally.sram_of(store), tally.sm_total().written, Bytes());
      check_flow(tally.sram_of(rescale), Bytes(), Bytes());
    }
  });
}

TEST_CASE(
    "exact FLOPs are 4d for every visible pair and executed ones 4d for every pair of the visited tiles") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t heads = p.batch * p.heads;
    REQUIRE(problem_flops(p).exact.value() == Count(heads * 4 * p.head_dim * n.visible));
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
      const Work work = predict(algorithm, p, t).tally.work;
      REQUIRE(work.products == Flops(heads * 4 * p.head_dim * n.visited_entries));
      REQUIRE(work.mask == Flops(heads * n.masked_entries));
      REQUIRE(work.exponentials == Count(heads * (n.visited_entries + n.visited_rows)));
    }
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      const Work work = predict(algorithm, p, t).tally.work;
      REQUIRE(work.products == Flops(heads * 4 * p.head_dim * p.seq * p.kv_seq));
      REQUIRE(work.mask == Flops(heads * n.masked_of_all));
      REQUIRE(work.exponentials == Count(heads * p.seq * p.kv_seq));
    }
  });
}

}  // namespace
}  // namespace flashsim
