// What is alive backward, what forward keeps for it, and what counts as an input.
#include <string>
#include <vector>

#include "core/account/inputs.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/methods.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

std::string names_of(const std::vector<Alive>& alive) {
  std::string text;
  for (const Alive& tensor : alive) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(tensor.operand));
  }
  return text;
}

Prediction account(Algorithm algorithm, Pass pass, const Problem& p = {}, EagerPasses passes = {}) {
  return predict(p, {.algorithm = algorithm, .pass = pass, .passes = passes});
}

TEST_CASE("each algorithm names what is alive at its peaks backward") {
  const auto intermediate = [](Algorithm a) { return names_of(account(a, Pass::backward).intermediate); };
  const auto allocated = [](Algorithm a) { return names_of(account(a, Pass::backward).allocated); };
  CHECK(intermediate(Algorithm::standard) == "dP");
  CHECK(allocated(Algorithm::standard) == "dP, dV, dQ, dK");
  CHECK(intermediate(Algorithm::eager) == "dP, dS");
  CHECK(allocated(Algorithm::eager) == "dV, dP, dS");
  CHECK(allocated(Algorithm::flash1) == "dQ, dK, dV");
  CHECK(allocated(Algorithm::flash2) == "D, dQ sum, dQ, dK, dV");
  CHECK(names_of(predict(Problem{}, {.pass = Pass::backward, .deterministic = true}).allocated) ==
        "D, dQ, dK, dV");
  CHECK(names_of(account(Algorithm::flash2, Pass::backward, {.storage = NumberType::fp32}).allocated) ==
        "D, dQ, dK, dV");
}

TEST_CASE("of both passes what forward made stays") {
  const auto allocated = [](Algorithm a, EagerPasses passes = {}) {
    return names_of(account(a, Pass::both, {}, passes).allocated);
  };
  CHECK(allocated(Algorithm::standard) == "S, O, dP, dV, dQ, dK");
  CHECK(allocated(Algorithm::eager) == "S, P, O, dV, dP, dS");
  CHECK(allocated(Algorithm::eager, {.dropout = true}) == "S, P, P dropped, Z, O, dV, dP, dS");
  CHECK(allocated(Algorithm::flash1) == "O, l, m, dQ, dK, dV");
  CHECK(allocated(Algorithm::flash2) == "O, L, D, dQ sum, dQ, dK, dV");
}

TEST_CASE("where the matrices are small, eager's peak backward is at its end") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 4, .kv_seq = 4, .head_dim = 64};
  CHECK(names_of(account(Algorithm::eager, Pass::backward, p).allocated) == "dV, dS, dQ, dK");
}

TEST_CASE("forward keeps P, or what P is computed from again, and backward alone finds it among its inputs") {
  const Problem p;
  const auto saved = [&](Algorithm a, EagerPasses passes = {}) {
    return names_of(saved_for_backward(p, {.algorithm = a, .passes = passes}));
  };
  CHECK(saved(Algorithm::standard) == "P");
  CHECK(saved(Algorithm::eager) == "P");
  CHECK(saved(Algorithm::eager, {.dropout = true}) == "P, P dropped, Z");
  CHECK(saved(Algorithm::flash1) == "O, l, m");
  CHECK(saved(Algorithm::flash2) == "O, L");
  const auto inputs = [&](Pass pass) { return names_of(inputs_of(p, {.pass = pass})); };
  CHECK(inputs(Pass::forward) == "Q, K, V");
  CHECK(inputs(Pass::both) == "Q, K, V, dO");
  CHECK(inputs(Pass::backward) == "Q, K, V, dO, O, L");
}

TEST_CASE("at the worked example standard keeps 4 GiB for its gradients and flash 65 MiB") {
  const Problem p;
  CHECK(total_size(saved_for_backward(p, {.algorithm = Algorithm::standard})) ==
        Bytes(std::int64_t{1} << 32));
  CHECK(total_size(saved_for_backward(p, {.algorithm = Algorithm::flash2})) == Bytes(65 << 20));
}

TEST_CASE(
    "what flash computes again is one product of its five, and three of seven where it is deterministic") {
  test::RandomShapes shapes(31);
  for (int n = 0; n < 100; ++n) {
    const test::Shape shape = shapes.next(30);
    for (const Method& method : test::methods_of(Pass::backward, shape.tiling, 0)) {
      CAPTURE(test::text_of(method), text_of(shape));
      const Prediction prediction = predict(shape.problem, method);
      const Flops products = prediction.tally.work.products;
      if (!facts_of(method.algorithm).tiled) {
        REQUIRE(prediction.recomputed == Flops());
      } else if (method.deterministic) {
        REQUIRE(prediction.recomputed * Count(7) == products * Count(3));
      } else {
        REQUIRE(prediction.recomputed * Count(5) == products);
      }
    }
  }
}

TEST_CASE("the intermediate peak is no more than the allocated one") {
  test::RandomShapes shapes(32);
  for (unsigned n = 0; n < 60; ++n) {
    const test::Shape shape = shapes.next(30);
    for (const Pass pass : {Pass::backward, Pass::both}) {
      for (const Method& method : test::methods_of(pass, shape.tiling, n)) {
        CAPTURE(test::text_of(method), text_of(shape));
        const Prediction prediction = predict(shape.problem, method);
        REQUIRE(total_size(prediction.intermediate) <= total_size(prediction.allocated));
        REQUIRE(prediction.tally.peak_allocated == total_size(prediction.allocated));
      }
    }
  }
}

}  // namespace
}  // namespace flashsim
