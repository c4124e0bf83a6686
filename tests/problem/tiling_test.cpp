#include "core/problem/tiling.hpp"

#include <optional>
#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;

constexpr std::int64_t kKiB = 1024;

Problem problem_of(std::int64_t head_dim, NumberType storage) {
  return {.heads = 1, .kv_heads = 1, .head_dim = head_dim, .storage = storage};
}

/// The chosen tiles as text, or the error.
std::string chosen(Algorithm algorithm, const Problem& problem, Bytes limit, TilingRequest request = {}) {
  const auto tiling = resolve_tiling(algorithm, problem, request, limit, "the limit");
  return tiling ? tiling_text(*tiling) : message_of(tiling);
}

TEST_CASE("a tiling takes shared memory for its Q, K and V tiles in the storage type") {
  const Problem p = problem_of(256, NumberType::bf16);
  CHECK(tile_footprint(p, {128, 64}) == Bytes(131072));
  CHECK(tile_footprint(p, {128, 32}) == Bytes(98304));
  CHECK(tile_footprint(problem_of(128, NumberType::fp16), {128, 128}) == Bytes(98304));
  CHECK(tile_footprint(problem_of(128, NumberType::fp32), {128, 128}) == Bytes(196608));
}

TEST_CASE("a tiling fits to the byte") {
  const Problem p = problem_of(256, NumberType::bf16);
  CHECK(fits(p, {128, 64}, Bytes(131072)));
  CHECK_FALSE(fits(p, {128, 64}, Bytes(131071)));
  const std::int64_t largest = std::int64_t{1} << 40;
  CHECK_FALSE(
      fits(problem_of(largest, NumberType::fp64), {largest, largest}, Bytes((std::int64_t{1} << 62) + 5)));
}

TEST_CASE("128x64 tiles of bf16 with d 256 don't fit 99 KiB, and key tiles of 32 do") {
  const Problem p = problem_of(256, NumberType::bf16);
  const Bytes limit(101376);
  CHECK(chosen(Algorithm::flash2, p, limit, {128, 64}) ==
        "tiles 128×64 need 131072 B of shared memory for Q, K and V, and the limit is 101376 B");
  CHECK(hint_of(resolve_tiling(Algorithm::flash2, p, {128, 64}, limit, "the limit")) ==
        "tiles 128×32 fit, with 98304 B");
  CHECK(chosen(Algorithm::flash2, p, limit, {128, 32}) == "128×32");
}

TEST_CASE("tiles that can't fit by any size say what one row needs") {
  const Problem p = problem_of(4096, NumberType::fp64);
  const auto none = resolve_tiling(Algorithm::flash2, p, {}, Bytes(64 * kKiB), "a block's limit on T4");
  CHECK(message_of(none) ==
        "no tiles fit: one row each of Q, K and V needs 98304 B of shared memory, and a block's limit on T4 "
        "is 65536 B");
  CHECK(hint_of(none) == "");
  const auto explicit_ones =
      resolve_tiling(Algorithm::flash2, p, {.key_rows = 4}, Bytes(64 * kKiB), "a block's limit on T4");
  CHECK(hint_of(explicit_ones) == "not even tiles of one row fit: they need 98304 B");
}

TEST_CASE("the paper's rule takes the shared memory in elements of the storage type") {
  const auto paper = [](std::int64_t d, NumberType type, std::int64_t kib) {
    return tiling_text(paper_tiling(problem_of(d, type), Bytes(kib * kKiB)));
  };
  CHECK(paper(64, NumberType::fp32, 48) == "48×48");
  CHECK(paper(64, NumberType::fp16, 48) == "64×96");  // Br is at most d
  CHECK(paper(64, NumberType::fp16, 192) == "64×384");
  CHECK(paper(128, NumberType::fp16, 163) == "128×163");
  CHECK(paper(100, NumberType::fp32, 48) == "31×31");  // ⌈12288 / 400⌉ = ⌈30.72⌉
}

TEST_CASE("the paper's rule gives at least one row") {
  CHECK(tiling_text(paper_tiling(problem_of(4096, NumberType::fp32), Bytes(1))) == "1×1");
}

TEST_CASE("flash1 chooses by the paper's rule and the others choose 128x128") {
  const Problem p = problem_of(128, NumberType::fp16);
  const Bytes a100(163 * kKiB);
  CHECK(chosen(Algorithm::flash1, p, a100) == "128×163");
  CHECK(chosen(Algorithm::flash2, p, a100) == "128×128");
  CHECK(chosen(Algorithm::standard, p, a100) == "128×128");
  CHECK(chosen(Algorithm::eager, p, a100) == "128×128");
  CHECK(chosen(Algorithm::three_pass, p, a100) == "128×128");
}

TEST_CASE("memory-efficient chooses the chunks of its code, or all there is, whatever the limit") {
  Problem p = problem_of(128, NumberType::fp16);
  p.seq = p.kv_seq = 8192;
  CHECK(chosen(Algorithm::memory_efficient, p, Bytes(1)) == "1024×4096");
  CHECK(chosen(Algorithm::memory_efficient, p, Bytes(1), {.key_rows = 9000}) == "1024×9000");
  p.seq = 1000;
  p.kv_seq = 4095;
  CHECK(chosen(Algorithm::memory_efficient, p, Bytes(1)) == "1000×4095");
}

TEST_CASE("chosen tiles are halved, keys then queries in turn, until they fit") {
  const Problem p = problem_of(128, NumberType::fp16);  // 256 B a row
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 384)) == "128×128");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 384 - 1)) == "128×64");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 256 - 1)) == "64×64");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 192 - 1)) == "64×32");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 128 - 1)) == "32×32");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 3)) == "1×1");
}

TEST_CASE("a size that was asked for is kept and only the other one is chosen") {
  const Problem p = problem_of(128, NumberType::fp16);
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 300), {.query_rows = 200}) == "200×32");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 300), {.key_rows = 120}) == "32×120");
  CHECK(chosen(Algorithm::flash2, p, Bytes(256 * 300), {.query_rows = 299}) ==
        "tiles 299×1 need 77056 B of shared memory for Q, K and V, and the limit is 76800 B");
}

TEST_CASE("standard and eager take any tiles, for they keep none on the chip") {
  const Problem p = problem_of(256, NumberType::fp64);
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    CHECK(chosen(algorithm, p, Bytes(1), {4096, 4096}) == "4096×4096");
  }
}

TEST_CASE("the tiles of a tiled algorithm fit, whatever the shape and the limit, or are refused") {
  test::RandomShapes shapes(1);
  for (int n = 0; n < 2000; ++n) {
    const test::Shape shape = shapes.next(64);
    const Bytes limit(1 + 37 * n);
    for (const Algorithm algorithm : {Algorithm::flash1, Algorithm::flash2, Algorithm::three_pass}) {
      const auto tiling = resolve_tiling(algorithm, shape.problem, {}, limit, "the limit");
      CAPTURE(text_of(shape), limit);
      if (tiling) {
        REQUIRE(fits(shape.problem, *tiling, limit));
        REQUIRE(tiling->query_rows >= 1);
        REQUIRE(tiling->key_rows >= 1);
      } else {
        REQUIRE_FALSE(fits(shape.problem, {1, 1}, limit));
      }
    }
  }
}

}  // namespace
}  // namespace flashsim
