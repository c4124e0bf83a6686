// What is asked of a cache: read from JSON, and laid over another request.
#include <string>

#include "core/study/cache.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::kNoError;
using test::message_of;

CacheRequest read(const std::string& text) {
  const auto request = read_cache_request(text, "a.json");
  REQUIRE(message_of(request) == kNoError);
  return *request;
}

std::string message_for(const std::string& text) { return message_of(read_cache_request(text, "a.json")); }

}  // namespace

TEST_CASE("a cache's request reads every key of its input") {
  const CacheRequest request = read(R"({"batch": 2, "heads": 8, "kv_heads": 4, "seq": 100, "head_dim": 64,
    "layers": 3, "dtype": "bf16", "cache_dtype": "int4", "cache_group": 32, "gpu": "h100"})");
  CHECK(request.account.batch == 2);
  CHECK(request.account.heads == 8);
  CHECK(request.account.kv_heads == 4);
  CHECK(request.account.seq == 100);
  CHECK(request.account.head_dim == 64);
  CHECK(request.layers == 3);
  CHECK(request.account.dtype == NumberType::bf16);
  CHECK(request.type == CacheType::int4);
  CHECK(request.group == 32);
  CHECK(request.account.gpu == "h100");
}

TEST_CASE("a cache's request refuses what it doesn't know") {
  CHECK(message_for(R"({"kv_seq": 8})") == "a.json: unknown key kv_seq");
  CHECK(message_for(R"({"cache_dtype": "int3"})") == "a.json: cache_dtype: unknown cache type 'int3'");
  CHECK(message_for(R"({"input": {"layers": 0}})") ==
        "a.json: input.layers must be a whole number from 1 to 1099511627776, not 0");
  CHECK(message_for(R"({"schema": "flashsim.account/1", "input": {}})") ==
        "a.json: schema must be \"flashsim.cache/1\", not \"flashsim.account/1\"");
}

TEST_CASE("what was given wins, and the rest stays") {
  const CacheRequest under = read(R"({"seq": 100, "layers": 3, "cache_dtype": "int4", "cache_group": 32})");
  CacheRequest over;
  over.layers = 5;
  const CacheRequest both = laid_over(over, under);
  CHECK(both.layers == 5);
  CHECK(both.account.seq == 100);
  CHECK(both.type == CacheType::int4);
  CHECK(both.group == 32);
}

TEST_CASE("a cache in the tensors' type follows a change of that, and another doesn't") {
  CacheRequest over;
  over.account.dtype = NumberType::fp32;
  CHECK_FALSE(laid_over(over, read(R"({"dtype": "fp16", "cache_dtype": "fp16"})")).type);
  CHECK(laid_over(over, read(R"({"dtype": "fp16", "cache_dtype": "fp8"})")).type == CacheType::fp8);
}

TEST_CASE("groups go with the quantized type that had them") {
  CacheRequest over;
  over.type = CacheType::bf16;
  CHECK_FALSE(laid_over(over, read(R"({"cache_dtype": "int4", "cache_group": 32})")).group);
  over.type = CacheType::int8;
  CHECK(laid_over(over, read(R"({"cache_dtype": "int4", "cache_group": 32})")).group == 32);
}

}  // namespace flashsim
