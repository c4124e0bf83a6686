// What an account writes as its input repeats the run.
#include <nlohmann/json.hpp>

#include "core/study/account.hpp"
#include "core/study/report_json.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/pattern_for.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::kNoError;
using test::message_of;

/// The JSON of the account that the JSON of `report` asks for.
std::string repeated(const AccountReport& report) {
  const auto request = read_request(account_json(report, false).dump(), "report.json");
  if (!request) return message_of(request);
  const auto again = make_account(*request);
  return again ? account_json(*again, false).dump() : message_of(again);
}

TEST_CASE("the input of the bare account has every default in it, and repeats the run") {
  const auto report = make_account({});
  REQUIRE(message_of(report) == kNoError);
  CHECK(repeated(*report) == account_json(*report, false).dump());
  const auto request = read_request(account_json(*report, false).dump(), "report.json");
  REQUIRE(message_of(request) == kNoError);
  CHECK(request->algorithm == Algorithm::flash2);
  CHECK(request->batch == 1);
  CHECK(request->heads == 32);
  CHECK(request->kv_heads == 32);
  CHECK(request->seq == 8192);
  CHECK(request->kv_seq == 8192);
  CHECK(request->head_dim == 128);
  CHECK(request->dtype == NumberType::fp16);
  CHECK(request->causal == true);
  CHECK(request->alignment == CausalAlignment::bottom_right);
  CHECK(request->tiles.query_rows == 128);
  CHECK(request->tiles.key_rows == 128);
  CHECK(request->gpu == "a100");
}

TEST_CASE("the input of any account repeats the run") {
  test::RandomShapes shapes(9);
  for (int n = 0; n < 100; ++n) {
    const test::Shape shape = shapes.next(40);
    const Problem& p = shape.problem;
    for (const AlgorithmFacts& facts : kAlgorithms) {
      AccountRequest request = request_of(p);
      request.algorithm = facts.algorithm;
      request.gpu = "l4";
      request.pattern = test::pattern_for(facts.algorithm);
      if (n % 2 == 0) request.tiles = {shape.tiling.query_rows, shape.tiling.key_rows};
      if (n % 3 == 0) request.shared_memory = Bytes(54321);
      const auto report = make_account(request);
      CAPTURE(facts.name, text_of(shape));
      REQUIRE(message_of(report) == kNoError);
      REQUIRE(repeated(*report) == account_json(*report, false).dump());
    }
  }
}

}  // namespace
}  // namespace flashsim
