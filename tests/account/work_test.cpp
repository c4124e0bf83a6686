#include "core/account/prediction.hpp"

#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

TEST_CASE("paper FLOPs are 4·N·Nkv·d a head, halved when causal and N = Nkv, and only then") {
  Problem p{.batch = 2, .heads = 3, .kv_heads = 3, .seq = 10, .kv_seq = 10, .head_dim = 7, .causal = false};
  CHECK(problem_flops(p).paper.value() == Count(2 * 3 * 4 * 10 * 10 * 7));
  p.causal = true;
  CHECK(problem_flops(p).paper.value() == Count(2 * 3 * 2 * 10 * 10 * 7));
  p.kv_seq = 11;
  CHECK(problem_flops(p).paper.value() == Count(2 * 3 * 4 * 10 * 11 * 7));
  p.alignment = CausalAlignment::top_left;
  CHECK(problem_flops(p).paper.value() == Count(2 * 3 * 4 * 10 * 11 * 7));
}

TEST_CASE("exact is at most executed, and both are all there is without a mask") {
  test::RandomShapes shapes(5);
  for (int n = 0; n < 1000; ++n) {
    const test::Shape shape = shapes.next(40);
    const Problem& p = shape.problem;
    const ProblemFlops flops = problem_flops(p);
    CAPTURE(text_of(shape));
    for (const AlgorithmFacts& facts : kAlgorithms) {
      const Flops executed = predict(facts.algorithm, p, shape.tiling).tally.work.products;
      REQUIRE(flops.exact.value() <= executed.count);
      if (p.causal) continue;
      // Three passes make S three times: 8·d an entry instead of 4·d.
      const Count times = facts.algorithm == Algorithm::three_pass ? 2 : 1;
      REQUIRE(flops.exact.value() * times == executed.count);
      REQUIRE(flops.paper.value() * times == executed.count);
    }
    const Tiling one_by_one{1, 1};
    REQUIRE(predict(Algorithm::flash2, p, one_by_one).tally.work.products.count == flops.exact.value());
  }
}

TEST_CASE("softmax, mask, rescale and normalise are listed apart from the products") {
  // Two query tiles, of 2 and 1 rows, on key tiles of 2 and 1 keys; causal, so three pairs are visited.
  // Entries: 4 (masked), 2, 1. Rows of visited pairs: 2 + 1 + 1.
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 3, .kv_seq = 3, .head_dim = 5, .causal = true};
  const Tiling t{2, 2};
  const Work flash2 = predict(Algorithm::flash2, p, t).tally.work;
  CHECK(flash2.products == Flops(4 * 5 * 7));
  CHECK(flash2.mask == Flops(4));
  CHECK(flash2.softmax == Flops(3 * 7));
  CHECK(flash2.rescale == Flops(4 * (5 + 2)));
  CHECK(flash2.normalise == Flops(3 * (5 + 1)));  // once a row
  CHECK(flash2.exponentials == Count(7 + 4));
  CHECK(flash2.scale == Flops(0));
  const Work flash1 = predict(Algorithm::flash1, p, t).tally.work;
  CHECK(flash1.normalise == Flops(4 * (5 + 1)));  // for every visited pair
  CHECK(flash1.exponentials == Count(7 + 4));
  const Work standard = predict(Algorithm::standard, p, t).tally.work;
  CHECK(standard.products == Flops(4 * 5 * 9));
  CHECK(standard.softmax == Flops(4 * 9));  // one division more: P is normalised there
  CHECK(standard.mask == Flops(4 + 2));     // the tile above the diagonal is masked too
  CHECK(standard.rescale == Flops(0));
  CHECK(standard.exponentials == Count(9));
  CHECK(predict(Algorithm::eager, p, t).tally.work.scale == Flops(9));
  for (const Algorithm algorithm : {Algorithm::three_pass, Algorithm::three_pass_stored}) {
    const bool stored = algorithm == Algorithm::three_pass_stored;
    const Work passes = predict(algorithm, p, t).tally.work;
    CHECK(passes.products == Flops(2 * 5 * 7 * (stored ? 2 : 4)));
    CHECK(passes.mask == Flops(stored ? 4 : 12));
    CHECK(passes.softmax == Flops(5 * 7));
    CHECK(passes.exponentials == Count(2 * 7));
    CHECK(passes.rescale == Flops(0));
    CHECK(passes.normalise == Flops(3));  // ln l added to m; P was divided
  }
  const Work parts = predict(Algorithm::memory_efficient, p, t).tally.work;
  CHECK(parts.products == Flops(4 * 5 * 9));
  CHECK(parts.mask == Flops(4 + 2));
  CHECK(parts.softmax == Flops(3 * 9));
  CHECK(parts.rescale == Flops(3 * 2 * (2 * 5 + 2)));  // of every row the parts of two key chunks
  CHECK(parts.normalise == Flops(3 * 5));
  CHECK(parts.exponentials == Count(9 + 3 * 2));
}

}  // namespace
}  // namespace flashsim
