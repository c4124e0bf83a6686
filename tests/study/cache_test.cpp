// The cache's report: an example worked out by hand, and agreement with the account's predictions.
#include "core/study/cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>

#include "core/base/parse.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// The shape of Llama 3 8B.
CacheRequest llama() {
  CacheRequest request;
  request.account.heads = 32;
  request.account.kv_heads = 8;
  request.account.head_dim = 128;
  request.account.seq = 8192;
  request.layers = 32;
  return request;
}

bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

CacheReport report_of(const CacheRequest& request) {
  auto report = make_cache_report(request);
  INFO(message_of(report));
  REQUIRE(report.ok());
  return std::move(report).value();
}

}  // namespace

TEST_CASE(
    "Llama 3 8B keeps 128 KiB a token, 1 GiB at 8192, four times that with a head for each query head") {
  const CacheReport r = report_of(llama());
  CHECK(r.token_bytes() == Bytes(131072));
  CHECK(r.sequence_bytes() == Bytes(kGiB));
  CHECK(r.bytes() == Bytes(kGiB));
  REQUIRE(r.groupings.size() == 3);
  CHECK(r.groupings[0].name == "multi-head");
  CHECK(r.groupings[0].size.batch.value() == Count(4 * kGiB));
  CHECK(r.groupings[1].name == "grouped");
  CHECK(r.groupings[1].is_this);
  CHECK(r.groupings[2].name == "one head");
  CHECK(r.groupings[2].size.batch.value() == Count(128 * kMiB));
}

TEST_CASE("80 GiB hold 80 such sequences, and beside one of them 79 or 647168 tokens more") {
  const CacheReport r = report_of(llama());
  CHECK(r.fits_memory());
  CHECK(r.left == Bytes(79 * kGiB));
  CHECK(r.room.sequences == 80);
  CHECK(r.room.tokens == 655360);
  CHECK(r.room_left.sequences == 79);
  CHECK(r.room_left.tokens == 647168);
  CHECK(r.room_of(r.groupings[2]).sequences == 640);
}

TEST_CASE("a cache that is larger than the memory leaves nothing") {
  CacheRequest request = llama();
  request.account.batch = 81;
  const CacheReport r = report_of(request);
  CHECK_FALSE(r.fits_memory());
  CHECK(r.left == Bytes());
  CHECK(r.room.sequences == 80);
  CHECK(r.room_left.tokens == 0);
}

TEST_CASE("what a call makes is one layer's and the account's own peak, whatever the cache's type") {
  CacheRequest request = llama();
  request.type = CacheType::int4;
  const CacheReport r = report_of(request);
  REQUIRE(r.calls.size() == 3);
  CHECK(r.calls[0].peak == Bytes(4 * kGiB));
  CHECK(r.calls[1].peak == Bytes(8 * kGiB));
  CHECK(r.calls[2].peak == Bytes(65 * kMiB));
  for (const CallMemory& call : r.calls) {
    AccountRequest account = request.account;
    account.algorithm = call.algorithm;
    const auto of_account = make_account(account);
    REQUIRE(of_account.ok());
    CHECK(call.peak == of_account->peak_intermediate());
  }
}

TEST_CASE("a decode step of Llama 3 8B, byte for byte") {
  const CacheReport r = report_of(llama());
  REQUIRE(r.ways.size() == 3);
  CHECK(r.standard().name == "standard");
  CHECK(r.standard().reads == 4);
  CHECK(r.standard().cache == Bytes(128 * kMiB));
  CHECK(r.standard().scores == Bytes(4 * 32 * 8192 * 2));
  CHECK(r.standard().rest == Bytes(2 * 32 * 128 * 2));
  CHECK(r.flash().name == "flash2");
  CHECK(r.flash().cache == Bytes(128 * kMiB));
  CHECK(r.flash().scores == Bytes());
  CHECK(r.flash().rest == Bytes(2 * 32 * 128 * 2 + 32 * 4));
  CHECK(r.packed().name == "packed heads");
  CHECK(r.packed().reads == 1);
  CHECK(r.packed().cache == Bytes(32 * kMiB));
  CHECK(r.packed().rest == r.flash().rest);
  CHECK(r.new_rows.value() == Count(4096));
  CHECK(r.packed().step == Bytes(1074401280));
  CHECK(r.flops.value() == Count(134217728));
  CHECK(near(r.packed().intensity.value, 3.99756));
  CHECK(near(r.packed().least_time.value, 1074401280 / 2.039e12));
  CHECK(near(r.packed().most_tokens_per_second, 2.039e12 / 1074401280));
  CHECK(near(r.score_share(), 2097152.0 / 136331264));
  CHECK(near(r.standard_over_flash(), 136331264.0 / 134234240));
}

TEST_CASE("with a cache in the tensors' type the decode bytes are those of the predictions") {
  for (const NumberType dtype : kNumberTypes) {
    for (const std::int64_t kv_heads : {1, 3, 12}) {
      for (const std::int64_t seq : {1, 2, 127, 128, 129, 5000}) {
        CacheRequest request;
        request.account.dtype = dtype;
        request.account.batch = 5;
        request.account.heads = 12;
        request.account.kv_heads = kv_heads;
        request.account.head_dim = 40;
        request.account.seq = seq;
        const CacheReport r = report_of(request);
        CAPTURE(name_of(dtype), kv_heads, seq);
        const auto predicted = [&](Algorithm algorithm) {
          return predict(algorithm, r.decode, Tiling{.query_rows = 16, .key_rows = 32})
              .tally.hbm_total()
              .total();
        };
        CHECK(r.standard().attention() == predicted(Algorithm::standard));
        CHECK(r.flash().attention() == predicted(Algorithm::flash2));
      }
    }
  }
}

TEST_CASE("in every type a head is read once packed and H/Hkv times unpacked, and scores don't change") {
  for (const CacheTypeFacts& type : kCacheTypes) {
    CacheRequest request = llama();
    request.type = type.type;
    const CacheReport r = report_of(request);
    CAPTURE(type.name);
    CHECK(r.packed().cache * Count(32) == r.bytes());
    CHECK(r.standard().cache == r.packed().cache * Count(4));
    CHECK(r.flash().cache == r.standard().cache);
    CHECK(r.standard().scores == Bytes(4 * 32 * 8192 * 2));
  }
}

TEST_CASE("the cache's bytes don't depend on the tensors' type, and follow it unless they are told") {
  CacheRequest request = llama();
  request.account.dtype = NumberType::fp32;
  CHECK(report_of(request).bytes() == Bytes(2 * kGiB));
  request.type = CacheType::fp16;
  CHECK(report_of(request).bytes() == Bytes(kGiB));
}

TEST_CASE("a larger batch moves more in proportion, and each token costs as much as before") {
  CacheRequest request = llama();
  const CacheReport one = report_of(request);
  request.account.batch = 64;
  const CacheReport many = report_of(request);
  CHECK(many.packed().step == one.packed().step * Count(64));
  CHECK(near(many.packed().intensity.value, one.packed().intensity.value));
  CHECK(near(many.packed().most_tokens_per_second, one.packed().most_tokens_per_second));
}

TEST_CASE("a grouping is told once: one row where all heads are one, two where the grouping is an end") {
  CacheRequest request;
  request.account.heads = 1;
  CHECK(report_of(request).groupings.size() == 1);
  request.account.heads = 8;
  const CacheReport all = report_of(request);
  REQUIRE(all.groupings.size() == 2);
  CHECK(all.groupings[0].is_this);
  request.account.kv_heads = 1;
  const CacheReport one = report_of(request);
  REQUIRE(one.groupings.size() == 2);
  CHECK(one.groupings[1].is_this);
  CHECK(one.groupings[1].name == "one head");
  CHECK(one.groupings[1].size.batch.value() * Count(8) == one.groupings[0].size.batch.value());
}

TEST_CASE("every figure that is explained has the report's value") {
  CacheRequest request = llama();
  request.type = CacheType::int4;
  request.group = 48;
  request.account.batch = 3;
  const CacheReport r = report_of(request);
  const auto figures = explanations_of(r);
  const auto value_of = [&](const std::string& name) {
    const auto found = std::find_if(figures.begin(), figures.end(),
                                    [&](const ExplainedFigure& e) { return e.figure == name; });
    INFO(name);
    REQUIRE(found != figures.end());
    const auto* whole = std::get_if<std::int64_t>(&found->value);
    REQUIRE(whole != nullptr);
    return Bytes(*whole);
  };
  CHECK(value_of("cache.row_bytes") == Bytes(64 + 3 * 4));
  CHECK(value_of("cache.token_bytes") == r.token_bytes());
  CHECK(value_of("cache.bytes") == r.bytes());
  CHECK(value_of("cache.multi_head.bytes") == r.bytes() * Count(4));
  CHECK(value_of("memory.left_bytes") == r.left);
  for (const CallMemory& call : r.calls) {
    CHECK(value_of("prefill." + std::string(facts_of(call.algorithm).name) + ".peak_intermediate_bytes") ==
          call.peak);
  }
  CHECK(value_of("decode.standard.cache_bytes") == r.standard().cache);
  CHECK(value_of("decode.flash2.cache_bytes") == r.flash().cache);
  CHECK(value_of("decode.packed_heads.cache_bytes") == r.packed().cache);
  CHECK(value_of("decode.standard.hbm.S.read_bytes") * Count(4) == r.standard().scores);
  CHECK(value_of("decode.flash2.hbm.Q.read_bytes") + value_of("decode.flash2.hbm.O.write_bytes") +
            value_of("decode.flash2.hbm.L.write_bytes") ==
        r.flash().rest);
  CHECK(value_of("decode.packed_heads.step_bytes") == r.packed().step);
}

TEST_CASE("what leaves 64 bits is an error with the shape") {
  const auto refused = [](auto change) {
    CacheRequest request;
    change(request);
    const auto report = make_cache_report(request);
    CHECK(hint_of(report) == "make the problem smaller (--seq, --batch, --layers, --heads, --head-dim)");
    return message_of(report);
  };
  CHECK(refused([](CacheRequest& r) { r.account.seq = kLargestDimension; }) ==
        "a count of the KV cache leaves 64 bits (B 1 · H 32 · N 1099511627776 · d 128 · layers 1)");
  refused([](CacheRequest& r) { r.account.batch = kLargestDimension; });
  refused([](CacheRequest& r) {
    r.account.head_dim = kLargestDimension;
    r.account.batch = 16;
  });
  refused([](CacheRequest& r) { r.account.heads = kLargestDimension; });
  refused([](CacheRequest& r) { r.layers = kLargestDimension; });
  // The cache itself fits here, and what standard makes of it doesn't.
  refused([](CacheRequest& r) {
    r.account.seq = std::int64_t{1} << 31;
    r.account.kv_heads = 1;
  });
}

TEST_CASE("groups without a quantized type are refused, and sizes that can't be too") {
  CacheRequest request;
  request.group = 64;
  CHECK(message_of(make_cache_report(request)) ==
        "groups of 64 are for a quantized cache, and this one is fp16");
  CHECK(hint_of(make_cache_report(request)) ==
        "choose --cache-dtype int8 or int4, or leave --cache-group out");
  request.type = CacheType::int8;
  CHECK(message_of(make_cache_report(request)) == kNoError);
  request.group = 0;
  CHECK(message_of(make_cache_report(request)) ==
        "cache-group must be a whole number from 1 to 1099511627776, not 0");
  request.group.reset();
  request.layers = 0;
  CHECK(message_of(make_cache_report(request)) ==
        "layers must be a whole number from 1 to 1099511627776, not 0");
}

}  // namespace flashsim
