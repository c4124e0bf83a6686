// What a request says of parts and patterns: chosen, refused, repeated.
#include <nlohmann/json.hpp>

#include "core/study/compare.hpp"
#include "core/study/report_json.hpp"
#include "core/study/run_memory.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/runs.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;

AccountRequest decoding() {
  return {.algorithm = Algorithm::split_kv, .heads = 32, .kv_heads = 8, .seq = 1, .kv_seq = 65536};
}

AccountRequest windowed() {
  return {.algorithm = Algorithm::block_sparse,
          .heads = 2,
          .seq = 1024,
          .pattern = PatternRequest{.kind = PatternKind::window, .size = 256}};
}

TEST_CASE("a decoding step takes a tile for its packed rows, and as many parts as fill the machine") {
  const auto report = make_account(decoding());
  REQUIRE(report.ok());
  CHECK(tiling_text(report->method.tiling) == "16×128");
  REQUIRE(report->splits);
  CHECK(report->splits->automatic);
  CHECK(report->method.splits == 12);
  CHECK(report->kernels.front().blocks == Count(96));
  CHECK(report->kernels.back().kernel == "combine");
  CHECK(report->predicted_equals_counted() == true);
  AccountRequest more = decoding();
  more.gpu = "b200";
  CHECK(make_account(more)->method.splits > 12);
  more.splits = SplitsRequest{3};
  CHECK(make_account(more)->method.splits == 3);
}

TEST_CASE("packed tiles are the least power of two from 16 to 128 that holds the rows") {
  const auto rows_of = [](std::int64_t seq, std::int64_t group) {
    return packed_tiling({.heads = group, .kv_heads = 1, .seq = seq}).query_rows;
  };
  CHECK(rows_of(1, 1) == 16);
  CHECK(rows_of(1, 16) == 16);
  CHECK(rows_of(1, 17) == 32);
  CHECK(rows_of(16, 4) == 64);
  CHECK(rows_of(13, 5) == 128);
  CHECK(rows_of(8192, 1) == 128);
}

TEST_CASE("an option of another algorithm is refused") {
  AccountRequest request{.splits = SplitsRequest{}};
  CHECK(message_of(make_account(request)) ==
        "--splits means nothing for flash2, which doesn't split the keys");
  CHECK(hint_of(make_account(request)) == "--algo split-kv");
  request = windowed();
  request.algorithm = Algorithm::standard;
  CHECK(message_of(make_account(request)) ==
        "--pattern means nothing for standard, which computes every tile that the mask shows");
  request.pattern.reset();
  request.algorithm = Algorithm::block_sparse;
  CHECK(message_of(make_account(request)) ==
        "--algo block-sparse needs a pattern: the blocks that are there");
  RunRequest run = test::small_run(Algorithm::flash1);
  run.account.splits = SplitsRequest{4};
  CHECK(message_of(plan_run(run)) == "--splits means nothing for flash1, which doesn't split the keys");
}

TEST_CASE("groups of more packed rows than a dimension may have are refused") {
  const std::int64_t largest = std::int64_t{1} << 40;
  const auto report = make_account(
      {.algorithm = Algorithm::split_kv, .heads = 16, .kv_heads = 2, .seq = largest, .head_dim = 1});
  CHECK(message_of(report) ==
        "1099511627776 queries of 8 heads a group are more than 1099511627776 packed rows");
}

TEST_CASE(
    "compare passes an option over where it means nothing, and block-sparse where there is no pattern") {
  AccountRequest request{.heads = 2, .seq = 300, .splits = SplitsRequest{2}};
  const auto names = [](const Result<CompareReport>& report) {
    std::string text;
    for (const AccountReport& account : report->accounts) {
      text += std::string(facts_of(account.method.algorithm).name) + " ";
    }
    return text;
  };
  const auto plain = make_comparison(request);
  REQUIRE(plain.ok());
  CHECK(names(plain).find("split-kv") != std::string::npos);
  CHECK(names(plain).find("block-sparse") == std::string::npos);
  request.pattern = PatternRequest{.kind = PatternKind::strided, .size = 2};
  const auto sparse = make_comparison(request);
  REQUIRE(sparse.ok());
  CHECK(names(sparse).find("block-sparse") != std::string::npos);
  for (const AccountReport& account : sparse->accounts) {
    CHECK(account.method.splits == (account.method.algorithm == Algorithm::split_kv ? 2 : 1));
    CHECK(account.predicted_equals_counted() == true);
  }
  const auto json = compare_json(*sparse, false);
  CHECK(json["input"]["splits"] == 2);
  CHECK(json["input"]["pattern"] == "strided:2");
}

TEST_CASE("the input of a result repeats its parts and its pattern") {
  AccountRequest rows = windowed();
  rows.seq = 256;
  rows.pattern = PatternRequest{.kind = PatternKind::rows, .rows = {"10", "11"}, .source = "'p.json'"};
  AccountRequest three = decoding();
  three.splits = SplitsRequest{3};
  for (const AccountRequest& request : {decoding(), three, windowed(), rows}) {
    const auto report = make_account(request);
    REQUIRE(report.ok());
    const auto json = account_json(*report, true);
    const auto again = read_request(json.dump(), "r.json");
    REQUIRE(message_of(again) == test::kNoError);
    CHECK(account_json(*make_account(*again), true).dump() == json.dump());
  }
  CHECK(account_json(*make_account(decoding()), false)["input"]["splits"] == "auto");
  CHECK(account_json(*make_account(three), false)["input"]["splits"] == 3);
  CHECK(account_json(*make_account(rows), false)["input"]["pattern"].dump() == R"(["10","11"])");
}

TEST_CASE("what belongs to an algorithm goes with it, and split-kv's tiles follow its rows") {
  AccountRequest under = decoding();
  under.splits = SplitsRequest{3};
  under.tiles = {16, 128};
  const AccountRequest other = laid_over({.algorithm = Algorithm::flash2}, under);
  CHECK_FALSE(other.splits);
  const AccountRequest longer = laid_over({.seq = 64}, under);
  CHECK(longer.splits->count == 3);
  CHECK_FALSE(longer.tiles.query_rows);
  CHECK(laid_over({.kv_seq = 100}, under).tiles.query_rows == 16);
}

TEST_CASE("wrong parts and patterns in JSON are refused with their path") {
  const auto read = [](const char* text) { return message_of(read_request(text, "r.json")); };
  CHECK(read(R"({"splits": "many"})").find("splits") != std::string::npos);
  CHECK(read(R"({"splits": 0})").find("splits") != std::string::npos);
  CHECK(read(R"({"splits": 1.5})").find("splits") != std::string::npos);
  CHECK(read(R"({"splits": null, "pattern": null})") == test::kNoError);
  CHECK(read(R"({"pattern": "window:-1"})").find("pattern") != std::string::npos);
  CHECK(read(R"({"pattern": ["12"]})").find("pattern[0]") != std::string::npos);
  CHECK(read(R"({"pattern": 7})").find("pattern must be a list of texts") != std::string::npos);
}

TEST_CASE("a run resolves its parts against the GPU, counts as predicted, and is right") {
  RunRequest request = test::small_run(Algorithm::split_kv);
  request.account.heads = 4;
  request.account.kv_heads = 2;
  for (const std::optional<SplitsRequest>& splits :
       {std::optional<SplitsRequest>(), std::optional(SplitsRequest{2}), std::optional(SplitsRequest{100})}) {
    request.account.splits = splits;
    const auto plan = plan_run(request);
    REQUIRE(message_of(plan) == test::kNoError);
    const auto report = make_run(*plan);
    REQUIRE(message_of(report) == test::kNoError);
    CHECK(report->verdict == Verdict::right);
    CHECK(report->predicted_equals_counted() == true);
    CHECK(run_json(*report)["input"]["splits"] ==
          (splits ? nlohmann::ordered_json(*splits->count) : nlohmann::ordered_json("auto")));
  }
}

TEST_CASE("a run under a pattern counts as predicted and is right, and its FLOPs are those of its pairs") {
  RunRequest request = test::small_run(Algorithm::block_sparse);
  request.account.tiles = {4, 4};
  request.account.pattern = PatternRequest{.kind = PatternKind::window, .size = 2};
  const auto plan = plan_run(request);
  REQUIRE(message_of(plan) == test::kNoError);
  const auto report = make_run(*plan);
  REQUIRE(message_of(report) == test::kNoError);
  CHECK(report->verdict == Verdict::right);
  CHECK(report->predicted_equals_counted() == true);
  CHECK(report->forward.flops < Flops(problem_flops(plan->problem).exact.value()));
}

TEST_CASE("the memory of a run grows with its parts by the query tiles that threads keep of them") {
  RunRequest request = test::small_run(Algorithm::split_kv);
  request.threads = 3;
  request.account.splits = SplitsRequest{1};
  const auto one = plan_run(request);
  request.account.splits = SplitsRequest{4};
  const auto four = plan_run(request);
  REQUIRE(one.ok());
  REQUIRE(four.ok());
  const Problem packed = packed_heads(four->problem);
  const std::int64_t rows = std::min(four->tiling.query_rows, packed.seq);
  const std::int64_t d = packed.head_dim;
  CHECK(memory_of(*four) == memory_of(*one) + Bytes(3 * rows * (4 * (d + 1) + d) * size_of(four->compute)));
  request.account.splits = SplitsRequest{std::int64_t{1} << 40};
  CHECK(message_of(plan_run(request)).find("needs") != std::string::npos);
}

}  // namespace
}  // namespace flashsim
