// The papers' formulas and figures of the backward pass.
#include <array>
#include <utility>

#include "core/account/inputs.hpp"
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

Bytes hbm(const Problem& problem, const Method& method) {
  return predict(problem, method).tally.hbm_total().total();
}

double gigabytes(const Problem& problem, const Method& method) {
  return static_cast<double>(hbm(problem, method).value()) / 1e9;
}

TEST_CASE("standard backward moves 7N² + 8Nd elements, eager two matrices more to scale") {
  for (const auto& [n, d] : {std::pair{64, 16}, {100, 7}, {1, 1}, {513, 64}}) {
    const Problem p = square(n, d);
    CHECK(hbm(p, {.algorithm = Algorithm::standard, .pass = Pass::backward}) ==
          Bytes(4 * (7 * n * n + 8 * n * d)));
    CHECK(hbm(p, {.algorithm = Algorithm::eager, .pass = Pass::backward}) ==
          Bytes(4 * (9 * n * n + 8 * n * d)));
  }
}

TEST_CASE("flash1 backward moves 4Nd + Tc(5Nd + 2N) elements, and Nd to start with") {
  for (const auto& [n, d, br, bc] :
       {std::array{64, 16, 16, 8}, {100, 7, 30, 40}, {512, 64, 512, 1}, {9, 1, 1, 9}}) {
    const int tc = (n + bc - 1) / bc;
    const Tally tally =
        predict(square(n, d), {.algorithm = Algorithm::flash1, .tiling = {br, bc}, .pass = Pass::backward})
            .tally;
    CHECK(tally.hbm_total().total() == Bytes(4 * (4 * n * d + tc * (5 * n * d + 2 * n) + n * d)));
    CHECK(tally.initial_of(Operand::dQ).written == Bytes(4 * n * d));
  }
}

// GPT-2 medium: N 1024, d 64, 16 heads, batch 64, fp16, forward and backward (arXiv 2205.14135, figure 2).
Problem gpt2_medium() {
  return {
      .batch = 64, .heads = 16, .kv_heads = 16, .seq = 1024, .kv_seq = 1024, .head_dim = 64, .causal = false};
}

TEST_CASE("figure 2 of the FlashAttention paper: its 4.4 GB, and from which passes its 40.3 GB come") {
  const Problem p = gpt2_medium();
  const auto flash1 = [&](std::int64_t bc) {
    return gigabytes(p, {.algorithm = Algorithm::flash1, .tiling = {64, bc}, .pass = Pass::both});
  };
  CHECK(hbm(p, {.algorithm = Algorithm::flash1, .tiling = {64, 384}, .pass = Pass::both}) ==
        Bytes(4378853376));
  CHECK(flash1(384) == Approx(4.38).margin(0.005));
  CHECK(flash1(256) == Approx(5.48).margin(0.005));
  CHECK(gigabytes(p, {.algorithm = Algorithm::standard, .pass = Pass::both}) == Approx(25.2).margin(0.05));
  const auto eager = [&](EagerPasses passes) {
    return gigabytes(p, {.algorithm = Algorithm::eager, .pass = Pass::both, .passes = passes});
  };
  CHECK(eager({.scale = false, .dropout = true}) == Approx(36.0).margin(0.05));
  CHECK(eager({.padding_mask = true}) == Approx(38.1).margin(0.05));
  CHECK(eager({.scale = false, .padding_mask = true, .dropout = true}) == Approx(40.3).margin(0.05));
}

TEST_CASE("what papers divide by backward is two and a half times forward, whatever the algorithm") {
  const Problem p;
  const Count forward = problem_flops(p).paper.value();
  for (const AlgorithmFacts& facts : kAlgorithms) {
    const auto paper = [&](Pass pass) {
      return problem_flops(p, {.algorithm = facts.algorithm, .pass = pass}).paper.value();
    };
    CHECK(paper(Pass::forward) == forward);
    CHECK(paper(Pass::backward) * 2 == forward * 5);
    CHECK(paper(Pass::both) * 2 == forward * 7);
  }
}

// Appendix E.6 of the same paper: batch 16, 8 heads, d 64, fp16, no mask, no dropout, forward and backward.
Problem of_appendix(std::int64_t n) {
  return {.batch = 16, .heads = 8, .kv_heads = 8, .seq = n, .kv_seq = n, .head_dim = 64, .causal = false};
}

constexpr std::int64_t kMiB = 1 << 20;

/// Inputs and peak of `method`, and so many tensors [N, d] beside them, in MiB.
double needed_mib(const Problem& p, const Method& method, std::int64_t beside) {
  const Bytes needed = input_bytes(p, method) + predict(p, method).tally.peak_allocated +
                       whole_size(Operand::Q, p) * Count(beside);
  return static_cast<double>(needed.value()) / kMiB;
}

TEST_CASE("appendix E.6: the memory of PyTorch is our eager account and four tensors [N, d] more") {
  for (const auto& [n, published] : {std::pair{512, 336}, {1024, 1184}, {2048, 4416}, {4096, 17024}}) {
    const Problem p = of_appendix(n);
    // Contiguous copies of Q and of K, and two that only fit.
    CHECK(needed_mib(p, {.algorithm = Algorithm::eager, .pass = Pass::both, .passes = {.scale = false}}, 4) ==
          published);
  }
}

TEST_CASE("appendix E.6: the memory of flash is our account and a packed gradient more") {
  for (const auto& [n, published] : {std::pair{512, 104}, {1024, 209}, {2048, 418}, {4096, 836}}) {
    const Problem p = of_appendix(n);
    const double mib = needed_mib(p, {.algorithm = Algorithm::flash2, .pass = Pass::both}, 3);
    CHECK(mib == Approx(published).margin(0.51));
    const std::int64_t statistics = 2 * whole_size(Operand::L, p).value();
    CHECK(mib * kMiB == static_cast<double>(13 * whole_size(Operand::Q, p).value() + statistics));
  }
}

}  // namespace
}  // namespace flashsim
