// The cache's closed form against sizes worked out by hand, and what must hold for every shape.
#include "core/account/kv_cache.hpp"

#include <cstdint>

#include "core/base/parse.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

Problem shape(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t tokens,
              std::int64_t head_dim) {
  return {
      .batch = batch, .heads = heads, .kv_heads = kv_heads, .seq = 1, .kv_seq = tokens, .head_dim = head_dim};
}

std::int64_t row(std::int64_t head_dim, CacheType type, std::int64_t group = kDefaultCacheGroup) {
  return cache_row_bytes(head_dim, {.layers = 1, .type = type, .group = group}).value().value();
}

Count whole(const Problem& problem, const CacheLayout& layout) {
  return cache_size(problem, layout, Formula("Hkv", problem.kv_heads)).batch.value();
}

constexpr std::int64_t kDims[] = {8, 9, 20, 64, 80, 96, 128, 256, 1000};
constexpr std::int64_t kGroups[] = {8, 20, 32, 64, 128, 4096};

}  // namespace

TEST_CASE("a row is its elements, in whole bytes, and a scale for every group") {
  CHECK(row(128, CacheType::fp16) == 256);
  CHECK(row(128, CacheType::bf16) == 256);
  CHECK(row(128, CacheType::fp32) == 512);
  CHECK(row(128, CacheType::fp64) == 1024);
  CHECK(row(128, CacheType::fp8) == 128);
  CHECK(row(128, CacheType::int8) == 128 + 2);
  CHECK(row(128, CacheType::int4) == 64 + 4);
  CHECK(row(128, CacheType::int8, 32) == 128 + 4 * 2);
  CHECK(row(128, CacheType::int4, 32) == 64 + 4 * 4);
}

TEST_CASE("ragged groups and odd rows of int4 round up") {
  CHECK(row(80, CacheType::int8, 32) == 80 + 3 * 2);
  CHECK(row(80, CacheType::int4, 32) == 40 + 3 * 4);
  CHECK(row(129, CacheType::int4) == 65 + 2 * 4);
  CHECK(row(5, CacheType::int4, 2) == 3 + 3 * 4);
  CHECK(row(1, CacheType::int4) == 1 + 4);
}

TEST_CASE("a row's formula says how it came about") {
  const CacheLayout layout{.layers = 1, .type = CacheType::int4, .group = 32};
  CHECK(cache_row_bytes(80, layout).symbols() == "⌈d/2⌉ + ⌈d/G⌉·4");
  CHECK(cache_row_bytes(80, layout).numbers() == "40 + 3 · 4");
  CHECK(cache_row_bytes(80, {}).symbols() == "d·c");
  CHECK(cache_row_bytes(80, {}).numbers() == "80 · 2");
}

TEST_CASE("eight key/value heads of 128 in 32 layers take 128 KiB a token, and 8192 tokens 1 GiB") {
  const Problem problem = shape(3, 32, 8, 8192, 128);
  const CacheSize size = cache_size(problem, {.layers = 32}, Formula("Hkv", 8));
  CHECK(size.token.value() == Count(131072));
  CHECK(size.sequence.value() == Count(std::int64_t{1} << 30));
  CHECK(size.batch.value() == Count(std::int64_t{3} << 30));
  CHECK(size.batch.symbols() == "2·layers·B·Hkv·N·R");
  CHECK(size.batch.numbers() == "2 · 32 · 3 · 8 · 8192 · 256");
}

TEST_CASE("a cache grows in proportion to batch, layers, length and key/value heads") {
  for (const CacheTypeFacts& type : kCacheTypes) {
    for (const std::int64_t depth : {1, 5, 64, 200}) {
      CAPTURE(type.name, depth);
      const CacheLayout layout{.layers = 3, .type = type.type, .group = 48};
      const Count one = whole(shape(2, 12, 4, 77, depth), layout);
      CHECK(whole(shape(10, 12, 4, 77, depth), layout) == Count(5) * one);
      CHECK(whole(shape(2, 12, 4, 7 * 77, depth), layout) == Count(7) * one);
      CHECK(whole(shape(2, 12, 12, 77, depth), layout) == Count(3) * one);
      CHECK(whole(shape(2, 12, 1, 77, depth), layout) * Count(4) == one);
      CHECK(whole(shape(2, 12, 4, 77, depth), {.layers = 33, .type = type.type, .group = 48}) ==
            Count(11) * one);
    }
  }
}

TEST_CASE("query heads alone change nothing") {
  const Count few = whole(shape(2, 4, 4, 77, 64), {});
  CHECK(whole(shape(2, 64, 4, 77, 64), {}) == few);
}

TEST_CASE("a quantized cache is never larger than fp16, given rows and groups of at least eight elements") {
  for (const std::int64_t depth : kDims) {
    for (const std::int64_t group : kGroups) {
      CAPTURE(depth, group);
      CHECK(row(depth, CacheType::int8, group) <= row(depth, CacheType::fp16));
      CHECK(row(depth, CacheType::int4, group) <= row(depth, CacheType::fp16));
    }
  }
}

TEST_CASE("a scale for every element makes a quantized cache larger than fp16") {
  CHECK(row(64, CacheType::int8, 1) > row(64, CacheType::fp16));
}

TEST_CASE("smaller groups never take less") {
  for (const std::int64_t depth : kDims) {
    for (std::int64_t group = 1; group < 140; ++group) {
      CHECK(row(depth, CacheType::int4, group) >= row(depth, CacheType::int4, group + 1));
      CHECK(row(depth, CacheType::int8, group) >= row(depth, CacheType::int8, group + 1));
    }
  }
}

TEST_CASE(
    "a step reads each key/value head once, or once for every query head, and writes one token's rows") {
  const Problem problem = shape(3, 32, 8, 100, 64);
  const CacheTraffic traffic = cache_traffic(problem, {.layers = 7});
  CHECK(traffic.packed.value() == Count(2 * 3 * 8 * 100 * 128));
  CHECK(traffic.unpacked.value() == traffic.packed.value() * Count(4));
  CHECK(traffic.new_rows.value() * Count(100) == traffic.packed.value());
}

TEST_CASE("a cache beyond 64 bits is an overflowed count") {
  CHECK(whole(shape(1, 1, 1, kLargestDimension, kLargestDimension), {}).overflowed());
  CHECK_FALSE(whole(shape(1, 1, 1, kLargestDimension, 128), {}).overflowed());
}

}  // namespace flashsim
