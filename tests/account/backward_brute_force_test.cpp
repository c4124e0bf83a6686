// The backward pass worked out a third time, by straight loops over rows and keys that use neither the walks
// nor the closed forms.
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/methods.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

/// Elements of one head.
struct Loops {
  Loops(const Problem& p, Tiling t) {
    for (std::int64_t row = 0; row < p.seq; row += t.query_rows) {
      const std::int64_t rows = std::min(t.query_rows, p.seq - row);
      for (std::int64_t key = 0; key < p.kv_seq; key += t.key_rows) {
        const std::int64_t keys = std::min(t.key_rows, p.kv_seq - key);
        std::int64_t seen = 0;
        for (std::int64_t r = row; r < row + rows; ++r) {
          for (std::int64_t k = key; k < key + keys; ++k) seen += test::visible(p, r, k) ? 1 : 0;
        }
        visible += seen;
        if (seen == 0) continue;
        visited_rows += rows;
        visited_keys += keys;
        visited_entries += rows * keys;
      }
    }
    for (std::int64_t key = 0; key < p.kv_seq; key += t.key_rows) {
      const std::int64_t keys = std::min(t.key_rows, p.kv_seq - key);
      bool reached = false;
      for (std::int64_t r = 0; r < p.seq; ++r) {
        for (std::int64_t k = key; k < key + keys; ++k) reached = reached || test::visible(p, r, k);
      }
      reached_keys += reached ? keys : 0;
    }
  }
  std::int64_t visible = 0, visited_rows = 0, visited_keys = 0, visited_entries = 0, reached_keys = 0;
};

template <class Look>
void for_random_shapes(Look look) {
  test::RandomShapes shapes(21);
  for (int n = 0; n < 150; ++n) {
    const test::Shape shape = shapes.next(14);
    INFO(text_of(shape));
    look(shape.problem, shape.tiling);
  }
}

Tally backward(Algorithm algorithm, const Problem& p, Tiling t, bool deterministic = false) {
  return predict(
             p, {.algorithm = algorithm, .tiling = t, .pass = Pass::backward, .deterministic = deterministic})
      .tally;
}

/// Bytes of all heads: `stored` and `summed` elements of one.
Bytes bytes(const Problem& p, std::int64_t stored, std::int64_t summed = 0) {
  const std::int64_t accumulated = p.storage == NumberType::fp64 ? 8 : 4;
  return Bytes(p.batch * p.heads * (stored * size_of(p.storage) + summed * accumulated));
}

TEST_CASE("standard's gradients read P twice, dP once and dS twice, and each operand once for its product") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const std::int64_t n = p.seq, kv = p.kv_seq, d = p.head_dim;
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      const std::int64_t scaled = algorithm == Algorithm::eager ? 1 : 0;
      const Flow total = backward(algorithm, p, t).hbm_total();
      REQUIRE(total.read == bytes(p, (5 + scaled) * n * kv + 3 * n * d + 2 * kv * d));
      REQUIRE(total.written == bytes(p, (2 + scaled) * n * kv + n * d + 2 * kv * d));
    }
  });
}

TEST_CASE("dropout adds a byte for each probability that its mask is written, and one that it is read") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const std::int64_t matrix = p.batch * p.heads * p.seq * p.kv_seq;
    const Bytes element(size_of(p.storage));
    Method with{.algorithm = Algorithm::eager, .tiling = t, .passes = {.dropout = true}};
    Method without{.algorithm = Algorithm::eager, .tiling = t};
    const auto added = [&](Pass pass) {
      with.pass = without.pass = pass;
      return predict(p, with).tally.hbm_total().total() - predict(p, without).tally.hbm_total().total();
    };
    REQUIRE(added(Pass::forward) == Bytes(matrix * (2 * element.value() + 1)));
    REQUIRE(added(Pass::backward) == Bytes(matrix * (2 * element.value() + 1)));
    REQUIRE(added(Pass::both) == Bytes(matrix * (4 * element.value() + 2)));
  });
}

TEST_CASE("a mask that is added costs two matrices forward, and backward nothing") {
  for_random_shapes([](const Problem& shape, Tiling t) {
    Problem p = shape;
    p.causal = false;
    Method with{.algorithm = Algorithm::eager, .tiling = t, .passes = {.padding_mask = true}};
    Method without{.algorithm = Algorithm::eager, .tiling = t};
    const Tally masked = predict(p, with).tally;
    REQUIRE(masked.hbm_total().total() ==
            predict(p, without).tally.hbm_total().total() + bytes(p, 2 * p.seq * p.kv_seq));
    REQUIRE(masked.work.mask == Flops(p.batch * p.heads * p.seq * p.kv_seq));
    with.pass = without.pass = Pass::backward;
    REQUIRE(predict(p, with).tally.hbm_total().total() == predict(p, without).tally.hbm_total().total());
  });
}

TEST_CASE(
    "flash1's gradients move K and V once if visited, dK and dV once, and six tiles in and one out a pair") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t d = p.head_dim;
    const Tally tally = backward(Algorithm::flash1, p, t);
    REQUIRE(tally.hbm_total().read ==
            bytes(p, 2 * n.reached_keys * d + 4 * n.visited_rows * d, 2 * n.visited_rows));
    REQUIRE(tally.hbm_total().written == bytes(p, n.visited_rows * d + 2 * p.kv_seq * d + p.seq * d));
    REQUIRE(tally.initial_of(Operand::dQ).written == bytes(p, p.seq * d));
    REQUIRE(tally.hbm_of(Operand::dK).written == bytes(p, p.kv_seq * d));
    REQUIRE(tally.work.products == Flops(p.batch * p.heads * 10 * d * n.visited_entries));
  });
}

TEST_CASE("flash2's gradients add to dQ in the accumulation type for every visited pair") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t d = p.head_dim;
    const bool apart = p.storage != p.accumulation();
    const Tally tally = backward(Algorithm::flash2, p, t);
    const std::int64_t converted = apart ? p.seq * d : 0;
    REQUIRE(tally.hbm_total().read == bytes(p,
                                            2 * p.seq * d + 2 * n.reached_keys * d + 2 * n.visited_rows * d,
                                            2 * n.visited_rows + n.visited_rows * d + converted));
    REQUIRE(tally.hbm_total().written ==
            bytes(p, 2 * p.kv_seq * d + converted, p.seq + p.seq * d + n.visited_rows * d));
    REQUIRE(tally.work.products == Flops(p.batch * p.heads * 10 * d * n.visited_entries));
    REQUIRE(tally.work.exponentials == Count(p.batch * p.heads * n.visited_entries));
  });
}

TEST_CASE("deterministic, flash2 sums dQ on the chip and pays with K and V for every visited pair") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const std::int64_t d = p.head_dim;
    const Tally tally = backward(Algorithm::flash2, p, t, true);
    REQUIRE(tally.hbm_of(Operand::dQ_sum).total() == Bytes());
    REQUIRE(tally.hbm_of(Operand::dQ).total() == bytes(p, p.seq * d));
    REQUIRE(tally.hbm_total().read ==
            bytes(p, 4 * p.seq * d + 2 * n.reached_keys * d + 2 * n.visited_rows * d + 2 * n.visited_keys * d,
                  2 * n.visited_rows + 2 * p.seq));
    REQUIRE(tally.hbm_total().written == bytes(p, 2 * p.kv_seq * d + p.seq * d, p.seq));
    REQUIRE(tally.work.products == Flops(p.batch * p.heads * 14 * d * n.visited_entries));
  });
}

TEST_CASE("exact FLOPs are those of two products forward, and of four or five backward") {
  for_random_shapes([](const Problem& p, Tiling t) {
    const Loops n(p, t);
    const Count product(2 * p.batch * p.heads * p.head_dim * n.visible);
    const auto exact = [&](Algorithm algorithm, Pass pass) {
      return problem_flops(p, {.algorithm = algorithm, .tiling = t, .pass = pass}).exact.value();
    };
    for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
      REQUIRE(exact(algorithm, Pass::forward) == product * 2);
      REQUIRE(exact(algorithm, Pass::backward) == product * 4);
      REQUIRE(exact(algorithm, Pass::both) == product * 6);
    }
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2}) {
      REQUIRE(exact(algorithm, Pass::backward) == product * 5);
      REQUIRE(exact(algorithm, Pass::both) == product * 7);
    }
  });
}

}  // namespace
}  // namespace flashsim
