#include "core/study/account.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/problem/library.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/pattern_for.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

/// An account that must succeed.
AccountReport account(const AccountRequest& request, const Progress& progress = {}) {
  auto report = make_account(request, progress);
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

TEST_CASE("what is wrong with a request is said, and no account is made") {
  CHECK(message_of(make_account({.seq = 0})) == "seq must be a whole number from 1 to 1099511627776, not 0");
  CHECK(message_of(make_account({.heads = 3, .kv_heads = 2})) ==
        "3 query heads can't share 2 key/value heads evenly");
  CHECK(message_of(make_account({.gpu = "h300"})) == "unknown GPU 'h300'");
  CHECK(hint_of(make_account({.gpu = "h300"})).starts_with("did you mean 'h100'? known: "));
}

TEST_CASE("tiles that don't fit are held against the machine's limit, or the one that is given") {
  CHECK(message_of(make_account({.tiles = {512, 512}})) ==
        "tiles 512×512 need 393216 B of shared memory for Q, K and V, and a block's limit on A100 80 GB is "
        "166912 B");
  CHECK(hint_of(make_account({.tiles = {512, 512}})) == "tiles 256×128 fit, with 131072 B");
  CHECK(
      message_of(make_account({.tiles = {128, 128}, .shared_memory = Bytes(65536)})) ==
      "tiles 128×128 need 98304 B of shared memory for Q, K and V, and the limit given by --sram is 65536 B");
}

TEST_CASE("a given limit replaces the machine's, in both directions") {
  CHECK(tiling_text(account({.shared_memory = Bytes(65536)}).method.tiling) == "128×64");
  CHECK(tiling_text(account({.tiles = {512, 512}, .shared_memory = Bytes(393216)}).method.tiling) ==
        "512×512");
  // FlashAttention's own figure for this chip: 192 KiB, so M = 98304 elements and Bc = ⌈98304 / 512⌉.
  CHECK(tiling_text(
            account({.algorithm = Algorithm::flash1, .shared_memory = Bytes(192 * 1024)}).method.tiling) ==
        "128×192");
}

TEST_CASE("a count that leaves 64 bits is an error, at once, for every algorithm") {
  const auto start = std::chrono::steady_clock::now();
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for (const bool causal : {false, true}) {
      // A pattern of so many query tiles isn't added up.
      if (facts.algorithm == Algorithm::block_sparse) continue;
      const auto report = make_account({.algorithm = facts.algorithm, .seq = kLargest, .causal = causal});
      CHECK(message_of(report) == "a count of " + std::string(facts.name) +
                                      " leaves 64 bits (B 1 · H 32 · N 1099511627776 · d 128)");
      CHECK(hint_of(report) ==
            "make the problem smaller (--seq, --kv-seq, --batch, --heads, --head-dim) or choose other tiles");
    }
  }
  CHECK(message_of(make_account({.batch = kLargest, .heads = kLargest, .seq = 1, .head_dim = 1}))
            .starts_with("a count of"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(400));  // 50 each
}

TEST_CASE("an account of 2^40 queries on few keys is exact, and takes no time") {
  const auto start = std::chrono::steady_clock::now();
  const AccountReport report =
      account({.heads = 1, .seq = kLargest, .kv_seq = 128, .head_dim = 1, .causal = false});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(50));
  // Q and O of two bytes and L of four for each query, and 128 keys and values for each tile of 128.
  CHECK(report.hbm_bytes() == Bytes(kLargest * (2 + 2 + 4 + 2 * 2)));
  CHECK_FALSE(report.counted);
}

/// Calls `look` on the accounts of one head, d = 1, at lengths and tiles where 64 bits become few.
template <class Look>
void for_huge_accounts(Look look) {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for (const std::int64_t tile :
         {std::int64_t{1}, std::int64_t{1} << 20, std::int64_t{1} << 30, kLargest}) {
      for (const std::int64_t seq : {std::int64_t{1}, std::int64_t{1} << 28, std::int64_t{1} << 30}) {
        const auto report = make_account({.algorithm = facts.algorithm,
                                          .heads = 1,
                                          .seq = seq,
                                          .head_dim = 1,
                                          .tiles = {tile, tile},
                                          .shared_memory = Bytes(std::int64_t{1} << 50),
                                          .pattern = test::pattern_for(facts.algorithm)});
        CAPTURE(facts.name, tile, seq);
        if (report) look(*report);
      }
    }
  }
}

TEST_CASE("every figure of an account is exact, or the account is refused") {
  int looked_at = 0;
  for_huge_accounts([&](const AccountReport& report) {
    ++looked_at;
    CHECK_FALSE(report.tally().overflowed());
    CHECK_FALSE(report.hbm_bytes().overflowed());
    CHECK_FALSE(report.tally().sm_total().total().overflowed());
    CHECK_FALSE(report.memory_needed().overflowed());
    for (const Explanation& e : report.prediction.explanations) CHECK_FALSE(e.value.overflowed());
    if (report.standard) CHECK_FALSE(report.standard->hbm.overflowed());
    if (report.standard) CHECK_FALSE(report.standard->peak_intermediate.overflowed());
  });
  CHECK(looked_at >= 16);
}

TEST_CASE("what a block keeps on the chip is exact too, or the account is refused") {
  for_huge_accounts([](const AccountReport& report) {
    for (const Occupancy& kernel : report.kernels) {
      CHECK_FALSE(kernel.footprint.shared_total().overflowed());
      CHECK_FALSE(kernel.footprint.register_total().overflowed());
    }
  });
}

TEST_CASE("a walk of more than a million steps is counted only where that is asked for") {
  // flash2 takes 5 steps for a query tile and 8 for a visited pair: 5·Tr + 8·Tr·Tc.
  AccountRequest request{
      .heads = 1, .seq = 400, .kv_seq = 312, .head_dim = 1, .causal = false, .tiles = {1, 1}};
  AccountReport short_walk = account(request);  // 5·400 + 8·400·312 = 1 000 400
  CHECK(short_walk.tally().steps == Count(1'000'400));
  CHECK_FALSE(short_walk.counted);
  CHECK_FALSE(short_walk.predicted_equals_counted());
  request.count_always = true;
  CHECK(account(request).predicted_equals_counted() == true);
  request.count_always = false;
  request.seq = 399;  // 997 899
  CHECK(account(request).predicted_equals_counted() == true);
}

TEST_CASE("a walk of exactly a million steps is counted") {
  // 5·Tr + 8·Tr·Tc = Tr · (5 + 8·Tc): 8 · 125 000 has no such form, so the closed form is replaced.
  AccountSources sources;
  sources.predict = [](const Problem& problem, const Method& method) {
    Prediction p = predict(problem, method);
    p.tally.steps = kStepsCountedAlways;
    return p;
  };
  const auto at = make_account({.seq = 1}, {}, sources);
  REQUIRE(message_of(at) == kNoError);
  CHECK(at->counted.has_value());
  sources.predict = [](const Problem& problem, const Method& method) {
    Prediction p = predict(problem, method);
    p.tally.steps = kStepsCountedAlways + 1;
    return p;
  };
  const auto above = make_account({.seq = 1}, {}, sources);
  REQUIRE(message_of(above) == kNoError);
  CHECK_FALSE(above->counted.has_value());
}

TEST_CASE("a long count tells how far it is, from 0 to 1 and never back") {
  std::vector<double> told;
  const AccountReport report =
      account({.heads = 1, .seq = 512, .head_dim = 1, .causal = false, .tiles = {1, 1}, .count_always = true},
              [&](double done) { told.push_back(done); });
  CHECK(report.predicted_equals_counted() == true);
  REQUIRE(told.size() >= 2);
  CHECK(told.front() > 0);
  CHECK(told.back() <= 1);
  for (std::size_t i = 1; i < told.size(); ++i) CHECK(told[i] > told[i - 1]);
}

TEST_CASE("inputs and peak together fit the memory to the byte") {
  const test::TemporaryFolder folder;
  auto file = nlohmann::json::parse(find_data("GPU", "machines", "a100").value().text);
  for (const AlgorithmFacts& facts : kAlgorithms) {
    AccountRequest request{.algorithm = facts.algorithm,
                           .batch = 2,
                           .heads = 4,
                           .kv_heads = 2,
                           .seq = 100,
                           .head_dim = 16,
                           .pattern = test::pattern_for(facts.algorithm)};
    const AccountReport report = account(request);
    // Q for 4 heads, K and V for 2, in fp16, and what the algorithm allocates.
    const Bytes inputs(2 * (4 + 2 + 2) * 100 * 16 * 2);
    const Bytes needed = inputs + report.tally().peak_allocated;
    CHECK(report.memory_needed() == needed);
    for (const std::int64_t missing : {0, 1}) {
      file["memory_bytes"] = needed.value() - missing;
      request.gpu = folder.file("m.json", file.dump());
      CHECK(account(request).fits_memory() == (missing == 0));
    }
  }
}

TEST_CASE("at N 131072 the score matrix of standard doesn't fit an A100 and flash does") {
  CHECK_FALSE(account({.algorithm = Algorithm::standard, .seq = 131072}).fits_memory());
  CHECK(account({.algorithm = Algorithm::flash2, .seq = 131072}).fits_memory());
}

TEST_CASE("beside every account stands what standard does on the same problem") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    const AccountRequest request{.algorithm = facts.algorithm,
                                 .batch = 3,
                                 .heads = 4,
                                 .seq = 70,
                                 .kv_seq = 90,
                                 .dtype = NumberType::fp32,
                                 .pattern = test::pattern_for(facts.algorithm)};
    AccountRequest same = request;
    same.algorithm = Algorithm::standard;
    same.pattern.reset();
    const AccountReport standard = account(same);
    const AccountReport report = account(request);
    REQUIRE(report.standard);
    CHECK(report.standard->hbm == standard.hbm_bytes());
    CHECK(report.standard->peak_intermediate == standard.peak_intermediate());
  }
}

TEST_CASE("where standard's counts leave 64 bits and flash's don't, nothing stands beside") {
  // 4N² elements of two bytes are 2^63 bytes.
  const AccountReport report = account({.heads = 1, .seq = std::int64_t{1} << 30, .head_dim = 1});
  CHECK_FALSE(report.standard);
}

TEST_CASE("the balance is that of the storage type, and absent where the machine has no such unit") {
  const auto balance = [](NumberType type, const char* gpu) {
    return account({.seq = 8, .head_dim = 8, .dtype = type, .gpu = gpu}).balance();
  };
  CHECK(balance(NumberType::fp64, "a100")->value == 9.7e12 / 2039e9);
  CHECK(balance(NumberType::fp32, "a100")->value == 19.5e12 / 2039e9);
  CHECK(balance(NumberType::bf16, "a100")->value == 312e12 / 2039e9);
  CHECK(balance(NumberType::fp8, "h100")->value == 1979e12 / 3350e9);
  CHECK_FALSE(balance(NumberType::fp8, "a100"));
  CHECK_FALSE(balance(NumberType::bf16, "v100"));
}

TEST_CASE("the intensity is exact FLOPs for each byte of HBM traffic") {
  const AccountReport report = account({.heads = 1, .seq = 2, .head_dim = 1, .dtype = NumberType::fp32});
  // Three visible pairs of 4 FLOPs; Q, K, V, O and L of two elements of 4 bytes.
  CHECK(report.intensity().value == 12.0 / 40.0);
}

TEST_CASE("every kernel of the account has its occupancy, in order") {
  const auto names = [](Algorithm algorithm) {
    std::string text;
    for (const Occupancy& kernel : account({.algorithm = algorithm, .seq = 64}).kernels)
      text += kernel.kernel + " ";
    return text;
  };
  CHECK(names(Algorithm::standard) == "scores softmax output ");
  CHECK(names(Algorithm::eager) == "scores scale mask softmax output ");
  CHECK(names(Algorithm::flash1) == "attention ");
  CHECK(names(Algorithm::flash2) == "attention ");
}

}  // namespace
}  // namespace flashsim
