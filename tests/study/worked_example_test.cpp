// The worked example: B 1, H 32, N 8192, d 128, fp16, causal, on an A100. Figures that must come out.
#include <string>

#include "core/base/quantity_text.hpp"
#include "core/study/account.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/pattern_for.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

AccountReport account(AccountRequest request) {
  auto report = make_account(request);
  REQUIRE(test::message_of(report) == test::kNoError);
  return std::move(report).value();
}

AccountReport account(Algorithm algorithm, std::int64_t seq = 8192) {
  return account({.algorithm = algorithm, .seq = seq, .pattern = test::pattern_for(algorithm)});
}

Bytes total_of(const AccountReport& report, Operand operand) {
  return report.tally().hbm_of(operand).total() + report.tally().initial_of(operand).total();
}

TEST_CASE("the account that nothing is said about is that of flash2 on an A100 with 80 GB") {
  const AccountReport report = account(AccountRequest{});
  CHECK(report.method.algorithm == Algorithm::flash2);
  CHECK(shape_text(report.problem) == "B 1 · H 32 · N 8192 · d 128");
  CHECK(tiling_text(report.method.tiling) == "128×128");
  CHECK(report.machine.title == "A100 80 GB");
  CHECK(report.gpu == "a100");
  CHECK(report.shared_memory == Bytes(163 * 1024));
}

TEST_CASE("flash moves 4289 MiB: Q and O 64 MiB, K and V 2080 MiB each, the logsumexp 1 MiB") {
  const AccountReport report = account(Algorithm::flash2);
  CHECK(report.hbm_bytes() == Bytes(4289 * kMiB));
  CHECK(size_text(report.hbm_bytes()) == "4.19 GiB");
  CHECK(total_of(report, Operand::Q) == Bytes(64 * kMiB));
  CHECK(total_of(report, Operand::K) == Bytes(2080 * kMiB));
  CHECK(total_of(report, Operand::V) == Bytes(2080 * kMiB));
  CHECK(total_of(report, Operand::O) == Bytes(64 * kMiB));
  CHECK(total_of(report, Operand::L) == Bytes(1 * kMiB));
  CHECK(size_text(report.tally().hbm_total().read) == "4.13 GiB");
  CHECK(size_text(report.tally().hbm_total().written) == "65.0 MiB");
  CHECK(ratio(total_of(report, Operand::K), whole_size(Operand::K, report.problem)) == 32.5);
}

TEST_CASE("flash keeps 65 MiB, and what it moves into the SMs is what it moves from HBM") {
  const AccountReport report = account(Algorithm::flash2);
  CHECK(report.peak_intermediate() == Bytes(65 * kMiB));
  CHECK(report.tally().peak_allocated == Bytes(65 * kMiB));
  CHECK(report.tally().sm_total().total() == report.hbm_bytes());
}

TEST_CASE("standard moves 16.25 GiB: the score matrix 16 GiB, Q, K, V and O 256 MiB") {
  const AccountReport report = account(Algorithm::standard);
  CHECK(report.hbm_bytes() == Bytes(16 * kGiB + 256 * kMiB));
  CHECK(size_text(report.hbm_bytes()) == "16.3 GiB");
  CHECK(total_of(report, Operand::S) + total_of(report, Operand::P) == Bytes(16 * kGiB));
  CHECK(total_of(report, Operand::Q) + total_of(report, Operand::K) + total_of(report, Operand::V) +
            total_of(report, Operand::O) ==
        Bytes(256 * kMiB));
}

TEST_CASE("standard keeps 4 GiB, 128 MiB a head of 67 108 864 entries") {
  const AccountReport report = account(Algorithm::standard);
  CHECK(report.peak_intermediate() == Bytes(4 * kGiB));
  CHECK(size_text(report.peak_intermediate()) == "4.00 GiB");
  CHECK(report.tally().peak_allocated == Bytes(4 * kGiB + 64 * kMiB));
  CHECK(score_matrix_entries(report.problem) == Count(67108864));
  CHECK(score_matrix_bytes(report.problem) == Bytes(128 * kMiB));
}

TEST_CASE("into the SMs standard moves 16 GiB of S and P, 8 GiB of Q and K, and 4 GiB of V") {
  const Tally tally = account(Algorithm::standard).tally();
  CHECK(tally.sm_of(Operand::S).total() + tally.sm_of(Operand::P).total() == Bytes(16 * kGiB));
  CHECK(tally.sm_of(Operand::Q).total() + tally.sm_of(Operand::K).total() == Bytes(8 * kGiB));
  CHECK(tally.sm_of(Operand::V).total() == Bytes(4 * kGiB));
  CHECK(tally.sm_of(Operand::O).total() == Bytes(64 * kMiB));
}

TEST_CASE("flash moves 3.88 times less than standard, and 2.85 times less at N 512") {
  for (const auto& [seq, expected] : {std::pair{8192, "3.88"}, {512, "2.85"}}) {
    const AccountReport report = account(Algorithm::flash2, seq);
    REQUIRE(report.standard);
    CHECK(three_digits(ratio(report.standard->hbm, report.hbm_bytes())) == expected);
  }
}

TEST_CASE("at N 32768 standard keeps 64 GiB and flash 260 MiB") {
  CHECK(size_text(account(Algorithm::standard, 32768).peak_intermediate()) == "64.0 GiB");
  CHECK(size_text(account(Algorithm::flash2, 32768).peak_intermediate()) == "260 MiB");
  CHECK(account(Algorithm::flash2, 32768).standard->peak_intermediate == Bytes(64 * kGiB));
}

TEST_CASE("the FLOPs are told three ways") {
  const AccountReport report = account(Algorithm::flash2);
  const std::int64_t n = 8192;
  CHECK(report.flops.paper.value() == Count(32 * 2 * n * n * 128));
  CHECK(report.flops.exact.value() == Count(32 * 4 * 128 * (n * (n + 1) / 2)));
  CHECK(report.tally().work.products == Flops(n * 4 * 128 * 32 * (64 * 65 / 2) * 2));
  CHECK(account(Algorithm::standard).tally().work.products == Flops(32 * 4 * n * n * 128));
}

TEST_CASE("flash2 launches 2048 blocks, one an SM, in 19 waves") {
  const AccountReport report = account(Algorithm::flash2);
  REQUIRE(report.kernels.size() == 1);
  const Occupancy& kernel = report.kernels.front();
  CHECK(kernel.blocks == Count(2048));
  CHECK(kernel.blocks_per_sm == 1);
  CHECK(kernel.waves == 2048.0 / 108);
  CHECK(kernel.sm_share == 1.0);
  CHECK(kernel.footprint.shared_total() == Bytes(96 * 1024));
  CHECK(kernel.footprint.register_total() == Bytes((64 + 32 + 64 + 1) * 1024));
  CHECK_FALSE(kernel.registers_overflow);
}

TEST_CASE("flash1 launches one block a head, so 32 of 108 SMs are at work") {
  const AccountReport report = account(Algorithm::flash1);
  CHECK(tiling_text(report.method.tiling) == "128×163");
  REQUIRE(report.kernels.size() == 1);
  const Occupancy& kernel = report.kernels.front();
  CHECK(kernel.blocks == Count(32));
  CHECK(kernel.sm_share == 32.0 / 108);
  CHECK(kernel.waves == 32.0 / (108.0 * static_cast<double>(kernel.blocks_per_sm)));
}

TEST_CASE("predicted equals counted for every algorithm") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CAPTURE(facts.name);
    CHECK(account(facts.algorithm).predicted_equals_counted() == true);
    CHECK(account(facts.algorithm, 512).predicted_equals_counted() == true);
  }
}

TEST_CASE("the A100 does 153 FLOPs in fp16 for each byte of its bandwidth, and flash asks for more") {
  const AccountReport flash = account(Algorithm::flash2);
  CHECK(three_digits(flash.balance()->value) == "153");
  CHECK(three_digits(flash.intensity().value) == "122");
  CHECK(three_digits(account(Algorithm::standard).intensity().value) == "31.5");
}

}  // namespace
}  // namespace flashsim
