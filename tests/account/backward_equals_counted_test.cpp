// The closed forms of the backward pass, and of eager's passes, against the ledger, on every figure.
#include <string>

#include "core/account/check.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/methods.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"

namespace flashsim {
namespace {

/// What differs, as text: empty where nothing does.
std::string differences(const Problem& problem, const Method& method) {
  Ledger ledger(problem);
  walk(problem, method, ledger);
  std::string text;
  const Tally counted = ledger.times(walks_of(problem, method));
  for (const Discrepancy& d : discrepancies(predict(problem, method).tally, counted)) {
    text += fmt::format("{}: predicted {}, counted {}\n", d.figure, d.predicted.value(), d.counted.value());
  }
  return text;
}

TEST_CASE("backward too, predicted equals counted on every figure, for every small shape") {
  unsigned bits = 0;
  test::for_every_small_shape(3, [&](const Problem& p, Tiling t) {
    for (const Method& method : test::methods_of(Pass::backward, t, ++bits)) {
      CAPTURE(test::text_of(method), shape_text(p), p.causal, name_of(p.alignment), tiling_text(t));
      REQUIRE(differences(p, method).empty());
    }
  });
}

TEST_CASE("in any pass and of any passes predicted equals counted, for random shapes") {
  test::RandomShapes shapes(11);
  for (unsigned n = 0; n < 300; ++n) {
    const test::Shape shape = shapes.next(n % 10 == 0 ? 80 : 30);
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      for (const Method& method : test::methods_of(pass, shape.tiling, n)) {
        CAPTURE(test::text_of(method), text_of(shape));
        REQUIRE(differences(shape.problem, method).empty());
      }
    }
  }
}

TEST_CASE("the account of both passes is forward's and backward's together") {
  test::RandomShapes shapes(12);
  for (unsigned n = 0; n < 60; ++n) {
    const test::Shape shape = shapes.next(30);
    for (Method method : test::methods_of(Pass::both, shape.tiling, n)) {
      CAPTURE(test::text_of(method), text_of(shape));
      const Prediction both = predict(shape.problem, method);
      method.pass = Pass::forward;
      const Prediction forward = predict(shape.problem, method);
      method.pass = Pass::backward;
      const Prediction backward = predict(shape.problem, method);
      REQUIRE(both.tally.hbm_total().total() ==
              forward.tally.hbm_total().total() + backward.tally.hbm_total().total());
      REQUIRE(both.tally.work.products == forward.tally.work.products + backward.tally.work.products);
      REQUIRE(both.tally.work.exponentials ==
              forward.tally.work.exponentials + backward.tally.work.exponentials);
      REQUIRE(both.tally.steps == forward.tally.steps + backward.tally.steps);
      REQUIRE(both.recomputed == backward.recomputed);
      REQUIRE(both.tally.kernels.size() == forward.tally.kernels.size() + backward.tally.kernels.size());
    }
  }
}

}  // namespace
}  // namespace flashsim
