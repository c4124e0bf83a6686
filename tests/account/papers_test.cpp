// The formulas of the papers, and figures that were worked out from them elsewhere.
#include <array>
#include <utility>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

/// A square problem of one head, unmasked, stored in fp32, so that every element is four bytes.
Problem square(std::int64_t n, std::int64_t d) {
  return {.heads = 1,
          .kv_heads = 1,
          .seq = n,
          .kv_seq = n,
          .head_dim = d,
          .causal = false,
          .storage = NumberType::fp32};
}

Count elements(Bytes bytes) {
  CHECK(bytes.value() % 4 == 0);
  return bytes.value() / 4;
}

Bytes hbm(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predict(algorithm, problem, tiling).tally.hbm_total().total();
}

Bytes initial(const Tally& tally) {
  Bytes sum;
  for (const Operand operand : kOperands) sum += tally.initial_of(operand).total();
  return sum;
}

TEST_CASE("standard moves 4N² + 4Nd elements and eager 2N² more for each pass of its own") {
  for (const auto& [n, d] : {std::pair{64, 16}, {100, 7}, {1, 1}, {513, 64}}) {
    Problem p = square(n, d);
    CHECK(elements(hbm(Algorithm::standard, p, {})) == Count(4 * n * n + 4 * n * d));
    CHECK(elements(hbm(Algorithm::eager, p, {})) == Count(6 * n * n + 4 * n * d));
    p.causal = true;
    CHECK(elements(hbm(Algorithm::standard, p, {})) == Count(4 * n * n + 4 * n * d));
    CHECK(elements(hbm(Algorithm::eager, p, {})) == Count(8 * n * n + 4 * n * d));
  }
}

TEST_CASE("flash2 moves 2Nd + N + 2Nd·Tr elements") {
  for (const auto& [n, d, br, bc] :
       {std::array{64, 16, 16, 8}, {100, 7, 30, 40}, {512, 64, 512, 1}, {9, 1, 1, 9}}) {
    const int tr = (n + br - 1) / br;
    CHECK(elements(hbm(Algorithm::flash2, square(n, d), {br, bc})) == Count(2 * n * d + n + 2 * n * d * tr));
  }
}

TEST_CASE("flash1 moves 2Nd + Tc(3Nd + 4N) elements, and Nd + 2N to start with") {
  for (const auto& [n, d, br, bc] :
       {std::array{64, 16, 16, 8}, {100, 7, 30, 40}, {512, 64, 512, 1}, {9, 1, 1, 9}}) {
    const int tc = (n + bc - 1) / bc;
    const Tally tally = predict(Algorithm::flash1, square(n, d), {br, bc}).tally;
    const Bytes start = initial(tally);
    CHECK(elements(start) == Count(n * d + 2 * n));
    CHECK(elements(tally.hbm_total().total() - start) == Count(2 * n * d + tc * (3 * n * d + 4 * n)));
  }
}

TEST_CASE("N 1024, d 64, fp32, tiles 64x64, one head: byte for byte") {
  Problem p = square(1024, 64);
  const Tiling t{64, 64};
  CHECK(hbm(Algorithm::standard, p, t) == Bytes(17825792));
  CHECK(hbm(Algorithm::flash2, p, t) == Bytes(8912896 + 4096));
  CHECK(predict(Algorithm::flash2, p, t).tally.hbm_of(Operand::L).total() == Bytes(4096));
  p.causal = true;
  CHECK(hbm(Algorithm::standard, p, t) == Bytes(17825792));
  CHECK(hbm(Algorithm::flash2, p, t) == Bytes(4980736 + 4096));
}

TEST_CASE("N 1000 moves its valid rows and no padding") {
  const Problem p = square(1000, 64);
  CHECK(hbm(Algorithm::flash2, p, {64, 64}) == Bytes(8704000 + 4000));
}

TEST_CASE("totals beyond 2^32 bytes are the true ones") {
  Problem p{.batch = 64,
            .heads = 16,
            .kv_heads = 16,
            .seq = 2048,
            .kv_seq = 2048,
            .head_dim = 64,
            .causal = false,
            .storage = NumberType::fp8};
  const Tally standard = predict(Algorithm::standard, p, {}).tally;
  CHECK(standard.hbm_of(Operand::S).written == Bytes(4294967296));
  CHECK(standard.hbm_total().total() == Bytes(4 * 4294967296 + std::int64_t{4} * 64 * 16 * 2048 * 64));
  p = {.batch = 8,
       .heads = 28,
       .kv_heads = 28,
       .seq = 4096,
       .kv_seq = 4096,
       .causal = false,
       .storage = NumberType::fp8};
  CHECK(predict(Algorithm::standard, p, {}).tally.hbm_of(Operand::S).written == Bytes(3758096384));
  p = {.batch = 8300,
       .heads = 128,
       .kv_heads = 128,
       .seq = 16,
       .kv_seq = 16,
       .head_dim = 128,
       .causal = false,
       .storage = NumberType::fp8};
  CHECK(predict(Algorithm::flash2, p, {}).tally.hbm_of(Operand::O).written == Bytes(2175795200));
}

TEST_CASE("grouped heads share storage, not loads, but in split-kv, which packs them") {
  Problem own{.heads = 8, .kv_heads = 8, .seq = 64, .kv_seq = 64, .head_dim = 16};
  Problem shared = own;
  shared.kv_heads = 2;
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CAPTURE(facts.name);
    if (facts.algorithm == Algorithm::split_kv) continue;
    const Prediction a = predict(facts.algorithm, own, {16, 16});
    const Prediction b = predict(facts.algorithm, shared, {16, 16});
    for (const Operand operand : kOperands) {
      CHECK(a.tally.hbm_of(operand).read == b.tally.hbm_of(operand).read);
      CHECK(a.tally.sm_of(operand).read == b.tally.sm_of(operand).read);
    }
  }
  CHECK(input_bytes(own) == Bytes(3 * 8 * 64 * 16 * 2));
  CHECK(input_bytes(shared) == Bytes((8 + 2 * 2) * 64 * 16 * 2));
}

}  // namespace
}  // namespace flashsim
