// Requests of a pass, of eager's passes and of determinism: read, laid over each other, refused.
#include <string>

#include <nlohmann/json.hpp>

#include "core/study/account.hpp"
#include "core/study/report_json.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

AccountRequest small(Algorithm algorithm) {
  return {.algorithm = algorithm, .batch = 1, .heads = 2, .seq = 10, .head_dim = 4};
}

TEST_CASE("a request reads pass, passes and deterministic") {
  const auto request =
      read_request(R"({"pass": "both", "passes": ["mask", "dropout"], "deterministic": true})", "a.json");
  REQUIRE(message_of(request) == kNoError);
  CHECK(request->pass == Pass::both);
  CHECK(request->passes == EagerPassList{.scale = false, .mask = true, .dropout = true});
  CHECK(request->deterministic == true);
}

TEST_CASE("passes are a list of known names, each once") {
  const auto message = [](const std::string& text) { return message_of(read_request(text, "a.json")); };
  CHECK(message(R"({"passes": "mask"})") == "a.json: passes must be a list of names, not \"mask\"");
  CHECK(message(R"({"passes": [1]})") == "a.json: passes must be a list of names, not [1]");
  CHECK(message(R"({"passes": ["msk"]})") == "a.json: passes: unknown pass of eager 'msk'");
  CHECK(message(R"({"passes": []})") == "a.json: passes: no passes of eager are named");
  CHECK(message_of(eager_pass_list_from("mask,mask")) == "pass of eager 'mask' stands twice");
  CHECK(message_of(eager_pass_list_from("mask,")) == "unknown pass of eager ''");
  CHECK(message_of(eager_pass_list_from("")) == "no passes of eager are named");
  CHECK(eager_pass_list_from("softmax").value() == EagerPassList{});
  CHECK(eager_pass_list_from("dropout,softmax,scale").value() ==
        EagerPassList{.scale = true, .dropout = true});
}

TEST_CASE("a mask is a pass where the problem is causal, and where it is named") {
  Problem p;
  Method method{.algorithm = Algorithm::eager};
  for (const bool causal : {true, false}) {
    p.causal = causal;
    method.passes = resolve_passes(std::nullopt, p);
    CHECK(masks_in_a_pass(p, method) == causal);
    CHECK(listed(p, method) == EagerPassList{.scale = true, .mask = causal});
    method.passes = resolve_passes(EagerPassList{.mask = true}, p);
    CHECK(masks_in_a_pass(p, method));
    method.passes = resolve_passes(EagerPassList{.scale = true}, p);
    CHECK_FALSE(masks_in_a_pass(p, method));
  }
}

TEST_CASE("choices that an algorithm doesn't have are refused") {
  AccountRequest request = small(Algorithm::flash1);
  request.passes = EagerPassList{};
  CHECK(message_of(make_account(request)) == "--passes names passes of eager, and the algorithm is flash1");
  request = small(Algorithm::flash1);
  request.deterministic = true;
  CHECK(message_of(make_account(request)) ==
        "--deterministic is a choice of flash2, and the algorithm is flash1");
  request.algorithm = Algorithm::flash2;
  CHECK(message_of(make_account(request)) ==
        "--deterministic says how gradients are made, and --pass is forward");
  request.pass = Pass::backward;
  CHECK(message_of(make_account(request)) == kNoError);
}

TEST_CASE("what only one algorithm, mask or pass has isn't carried over to another") {
  const AccountRequest under{.algorithm = Algorithm::eager,
                             .causal = true,
                             .pass = Pass::both,
                             .passes = EagerPassList{.scale = true, .mask = true},
                             .deterministic = true};
  CHECK(laid_over({}, under).passes == under.passes);
  CHECK(laid_over({}, under).pass == Pass::both);
  CHECK_FALSE(laid_over({.algorithm = Algorithm::flash2}, under).passes);
  CHECK_FALSE(laid_over({.algorithm = Algorithm::flash1}, under).deterministic);
  CHECK_FALSE(laid_over({.pass = Pass::forward}, under).deterministic);
  CHECK(laid_over({.pass = Pass::backward}, under).deterministic == true);
  CHECK_FALSE(laid_over({.causal = false}, under).passes);
  AccountRequest chosen = under;
  chosen.passes = EagerPassList{.mask = true};
  CHECK(laid_over({.causal = false}, chosen).passes == chosen.passes);
}

TEST_CASE("an account's JSON repeats its pass and its choices") {
  for (const Algorithm algorithm :
       {Algorithm::standard, Algorithm::eager, Algorithm::flash1, Algorithm::flash2}) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      for (const bool causal : {true, false}) {
        AccountRequest request = small(algorithm);
        request.pass = pass;
        request.causal = causal;
        if (algorithm == Algorithm::eager) request.passes = EagerPassList{.mask = true, .dropout = true};
        if (algorithm == Algorithm::flash2) request.deterministic = pass != Pass::forward;
        const auto report = make_account(request);
        REQUIRE(message_of(report) == kNoError);
        const std::string text = json_text(account_json(*report, true));
        const auto again = read_request(text, "a.json");
        REQUIRE(message_of(again) == kNoError);
        CHECK(json_text(account_json(make_account(*again).value(), true)) == text);
        CHECK(report->predicted_equals_counted() == true);
      }
    }
  }
}

TEST_CASE("the block that is told of is the first forward, and backward the one that keeps most") {
  AccountRequest request = small(Algorithm::flash2);
  CHECK(make_account(request)->main_kernel().kernel == "attention");
  request.pass = Pass::backward;
  CHECK(make_account(request)->main_kernel().kernel == "gradients");
  request.deterministic = true;
  CHECK(make_account(request)->main_kernel().kernel == "key_value_gradients");
}

TEST_CASE("a comparison takes each choice for the algorithm that has it") {
  AccountRequest request = small(Algorithm::flash2);
  request.pass = Pass::both;
  request.passes = EagerPassList{.dropout = true};
  request.deterministic = true;
  const auto report = make_comparison(request);
  REQUIRE(message_of(report) == kNoError);
  CHECK(report->accounts.size() + report->left_out.size() == kAlgorithms.size());
  for (const AccountReport& account : report->accounts) {
    CHECK(has_backward(account.method.algorithm));
    CHECK(account.predicted_equals_counted() == true);
    CHECK(account.method.deterministic == (account.method.algorithm == Algorithm::flash2));
    if (account.method.algorithm == Algorithm::eager) CHECK(account.method.passes.dropout);
  }
  for (const Algorithm algorithm : report->left_out) CHECK_FALSE(has_backward(algorithm));
}

TEST_CASE("counts of the backward pass that leave 64 bits are an error") {
  AccountRequest request = small(Algorithm::standard);
  request.pass = Pass::both;
  request.seq = 1'000'000'000;
  CHECK(message_of(make_account(request)).starts_with("a count of standard leaves 64 bits"));
}

}  // namespace
}  // namespace flashsim
