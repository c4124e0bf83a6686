// What --machine adds to an account: every load and store of the walks, played against an L2.
#include <fmt/format.h>

#include "core/schedule/walk.hpp"
#include "core/study/account.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/pattern_for.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

AccountRequest request_for(Algorithm algorithm, const test::Shape& shape) {
  AccountRequest request = request_of(shape.problem);
  request.algorithm = algorithm;
  request.dtype.reset();
  request.tiles = {shape.tiling.query_rows, shape.tiling.key_rows};
  request.gpu = "h100";
  if (algorithm == Algorithm::split_kv) request.splits = SplitsRequest{3};
  request.pattern = test::pattern_for(algorithm);
  request.machine = true;
  return request;
}

AccountReport account(const AccountRequest& request) {
  auto report = make_account(request);
  REQUIRE(test::message_of(report) == test::kNoError);
  return std::move(report).value();
}

bool is_simulated(Algorithm algorithm) { return algorithm != Algorithm::memory_efficient; }

TEST_CASE("the blocks of every algorithm load what its account says, whatever the cache keeps of it") {
  test::RandomShapes shapes(41);
  for (int n = 0; n < 40; ++n) {
    const test::Shape shape = shapes.next(24);
    for (const AlgorithmFacts& facts : kAlgorithms) {
      if (!is_simulated(facts.algorithm)) continue;
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
        if (pass != Pass::forward && !has_backward(facts.algorithm)) continue;
        CAPTURE(facts.name, text_of(shape), name_of(pass));
        AccountRequest request = request_for(facts.algorithm, shape);
        request.pass = pass;
        const AccountReport report = account(request);
        REQUIRE(report.simulation);
        const AfterL2& after = report.simulation->after_l2;
        REQUIRE(after.uncached_read == report.tally().sm_total().read);
        REQUIRE(after.compulsory_read <= input_bytes(report.problem, report.method));
        REQUIRE(after.hbm.read >= after.compulsory_read);
        REQUIRE(after.hbm.read <= after.uncached_read);
        REQUIRE(after.hbm.written + after.waiting <= report.tally().sm_total().written);
      }
    }
  }
}

TEST_CASE("parts of the keys are tiles apart: each is stored once, and read again without the inputs") {
  test::RandomShapes shapes(42);
  for (int n = 0; n < 40; ++n) {
    test::Shape shape = shapes.next(24);
    shape.problem.causal = false;
    for (const Algorithm algorithm : {Algorithm::flash2, Algorithm::split_kv}) {
      CAPTURE(facts_of(algorithm).name, text_of(shape));
      const AccountReport report = account(request_for(algorithm, shape));
      const AfterL2& after = report.simulation->after_l2;
      REQUIRE(after.compulsory_read == input_bytes(report.problem));
      REQUIRE(after.hbm.written + after.waiting == report.tally().sm_total().written);
    }
  }
}

TEST_CASE("a chain of many launches isn't simulated, and the account says so") {
  const AccountReport report =
      account({.algorithm = Algorithm::memory_efficient, .seq = 64, .machine = true});
  CHECK_FALSE(report.simulation);
  CHECK(report.not_simulated ==
        "memory-efficient is a chain of many launches, which the block simulation doesn't follow");
}

}  // namespace
}  // namespace flashsim
