#include "core/study/request.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

std::string message_for(const std::string& text) { return message_of(read_request(text, "a.json")); }

TEST_CASE("a request reads every key of the input of an account") {
  const auto request = read_request(R"({
    "algorithm": "flash1", "pass": "forward", "batch": 2, "heads": 8, "kv_heads": 4, "seq": 100, "kv_seq": 50,
    "head_dim": 64, "dtype": "bf16", "causal": false, "causal_alignment": "top-left", "tile_q": 16, "tile_k": 32,
    "sram_bytes": 65536, "gpu": "h100"})",
                                    "a.json");
  REQUIRE(message_of(request) == kNoError);
  CHECK(request->algorithm == Algorithm::flash1);
  CHECK(request->batch == 2);
  CHECK(request->heads == 8);
  CHECK(request->kv_heads == 4);
  CHECK(request->seq == 100);
  CHECK(request->kv_seq == 50);
  CHECK(request->head_dim == 64);
  CHECK(request->dtype == NumberType::bf16);
  CHECK(request->causal == false);
  CHECK(request->alignment == CausalAlignment::top_left);
  CHECK(request->tiles.query_rows == 16);
  CHECK(request->tiles.key_rows == 32);
  CHECK(request->shared_memory == Bytes(65536));
  CHECK(request->gpu == "h100");
}

TEST_CASE("a request that says nothing asks for nothing, and null says nothing") {
  for (const char* text : {"{}", R"({"input": {}})", R"({"algorithm": null, "seq": null, "causal": null,
       "dtype": null, "sram_bytes": null, "gpu": null, "tile_q": null, "causal_alignment": null, "pass": null})"}) {
    const auto request = read_request(text, "a.json");
    REQUIRE(message_of(request) == kNoError);
    CHECK_FALSE(request->algorithm);
    CHECK_FALSE(request->batch);
    CHECK_FALSE(request->heads);
    CHECK_FALSE(request->kv_heads);
    CHECK_FALSE(request->seq);
    CHECK_FALSE(request->kv_seq);
    CHECK_FALSE(request->head_dim);
    CHECK_FALSE(request->dtype);
    CHECK_FALSE(request->causal);
    CHECK_FALSE(request->alignment);
    CHECK_FALSE(request->tiles.query_rows);
    CHECK_FALSE(request->tiles.key_rows);
    CHECK_FALSE(request->shared_memory);
    CHECK_FALSE(request->gpu);
    CHECK_FALSE(request->count_always);
  }
}

TEST_CASE("a whole report is read by its input") {
  const auto request =
      read_request(R"({"schema": "flashsim.account/1", "input": {"seq": 5}, "result": {}})", "a.json");
  REQUIRE(message_of(request) == kNoError);
  CHECK(request->seq == 5);
}

TEST_CASE("an unknown key is refused with its path and the nearest key") {
  CHECK(message_for(R"({"sequence": 5})") == "a.json: unknown key sequence");
  CHECK(message_for(R"({"input": {"head": 5}})") == "a.json: unknown key input.head");
  CHECK(hint_of(read_request(R"({"input": {"head": 5}})", "a.json"))
            .starts_with("did you mean 'heads'? known: "));
}

TEST_CASE("a wrong value is refused with its path") {
  for (const char* key : {"batch", "heads", "kv_heads", "seq", "kv_seq", "head_dim", "tile_q", "tile_k"}) {
    const std::string path = std::string("a.json: input.") + key;
    const auto with = [&](const std::string& value) {
      return message_for("{\"input\": {\"" + std::string(key) + "\": " + value + "}}");
    };
    CHECK(with("0") == path + " must be a whole number from 1 to 1099511627776, not 0");
    CHECK(with("1099511627777") ==
          path + " must be a whole number from 1 to 1099511627776, not 1099511627777");
    CHECK(with("\"8\"") == path + " must be a whole number, not \"8\"");
    CHECK(with("1.5") == path + " must be a whole number, not 1.5");
    CHECK(with("9223372036854775808") == path + " must be a whole number, not 9223372036854775808");
  }
  CHECK(message_for(R"({"algorithm": "flsh2"})") == "a.json: algorithm: unknown algorithm 'flsh2'");
  CHECK(hint_of(read_request(R"({"algorithm": "flsh2"})", "a.json"))
            .starts_with("did you mean 'flash2'? known: "));
  CHECK(message_for(R"({"algorithm": 2})") == "a.json: algorithm must be a text of one line, not 2");
  CHECK(message_for(R"({"dtype": "fp15"})") == "a.json: dtype: unknown type 'fp15'");
  CHECK(message_for(R"({"causal": 1})") == "a.json: causal must be true or false, not 1");
  CHECK(message_for(R"({"causal_alignment": "left"})") ==
        "a.json: causal_alignment: unknown causal alignment 'left'");
  CHECK(message_for(R"({"pass": "sideways"})") == "a.json: pass: unknown pass 'sideways'");
  CHECK(message_for(R"({"sram_bytes": 0})") == "a.json: sram_bytes must be at least 1, not 0");
  CHECK(message_for(R"({"sram_bytes": "192KiB"})") ==
        "a.json: sram_bytes must be a whole number, not \"192KiB\"");
  CHECK(message_for(R"({"gpu": 100})") == "a.json: gpu must be a text of one line, not 100");
  CHECK(message_for(R"({"input": 3})") == "a.json: input must be an object, not 3");
  CHECK(message_for("{\"seq\": 8") == "a.json isn't valid JSON: it ends too early, at line 1, column 10");
}

TEST_CASE("a file that holds no object is refused by its name") {
  CHECK(message_for("[1]") == "a.json must be an object, not [1]");
}

TEST_CASE("a size beyond 64 bits is refused, not taken for an overflowed one") {
  CHECK(message_for(R"({"sram_bytes": 9223372036854775807})") ==
        "a.json: sram_bytes is too large: 9223372036854775807");
}

TEST_CASE("what followed from a value that is laid over follows again") {
  const AccountRequest under{.heads = 4,
                             .kv_heads = 4,
                             .seq = 9,
                             .kv_seq = 9,
                             .tiles = {5, 6},
                             .shared_memory = Bytes(99),
                             .gpu = "t4"};
  const AccountRequest longer = laid_over({.seq = 20}, under);
  CHECK_FALSE(longer.kv_seq.has_value());
  CHECK(longer.kv_heads == 4);
  CHECK(longer.tiles.query_rows == 5);
  CHECK_FALSE(laid_over({.heads = 2}, under).kv_heads.has_value());
  CHECK(laid_over({.seq = 20, .kv_seq = 7}, under).kv_seq == 7);
  const AccountRequest elsewhere = laid_over({.gpu = "h100"}, under);
  CHECK_FALSE(elsewhere.shared_memory.has_value());
  CHECK_FALSE(elsewhere.tiles.query_rows.has_value());
  CHECK_FALSE(laid_over({.head_dim = 32}, under).tiles.key_rows.has_value());
  CHECK(laid_over({.head_dim = 32}, under).shared_memory == Bytes(99));
}

TEST_CASE("of two requests laid over each other the upper one is heard, the lower one where it is silent") {
  AccountRequest over{.algorithm = Algorithm::eager, .seq = 7, .causal = false};
  over.tiles.query_rows = 3;
  AccountRequest under{.algorithm = Algorithm::flash1,
                       .batch = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .seq = 9,
                       .kv_seq = 11,
                       .head_dim = 13,
                       .dtype = NumberType::fp32,
                       .causal = true,
                       .alignment = CausalAlignment::top_left,
                       .tiles = {5, 6},
                       .shared_memory = Bytes(99),
                       .gpu = "t4",
                       .count_always = true};
  const AccountRequest both = laid_over(over, under);
  CHECK(both.algorithm == Algorithm::eager);
  CHECK(both.seq == 7);
  CHECK(both.causal == false);
  CHECK(both.tiles.query_rows == 3);
  CHECK(both.batch == 2);
  CHECK(both.heads == 4);
  CHECK(both.kv_heads == 2);
  CHECK(both.kv_seq == 11);
  CHECK(both.head_dim == 13);
  CHECK(both.dtype == NumberType::fp32);
  CHECK(both.alignment == CausalAlignment::top_left);
  CHECK_FALSE(both.tiles.key_rows.has_value());  // chosen for flash1
  CHECK(both.shared_memory == Bytes(99));
  CHECK(both.gpu == "t4");
  CHECK(both.count_always);
}

TEST_CASE("key/value heads and length are the query's unless they are given") {
  const auto plain = resolve_problem({.heads = 6, .seq = 100});
  REQUIRE(plain);
  CHECK(plain->kv_heads == 6);
  CHECK(plain->kv_seq == 100);
  const auto own = resolve_problem({.heads = 6, .kv_heads = 3, .seq = 100, .kv_seq = 7});
  REQUIRE(own);
  CHECK(own->kv_heads == 3);
  CHECK(own->kv_seq == 7);
}

TEST_CASE("a request that says nothing resolves to the worked example") {
  const auto problem = resolve_problem({});
  REQUIRE(problem);
  CHECK(shape_text(*problem) == shape_text(Problem{}));
  CHECK(problem->causal);
  CHECK(problem->storage == NumberType::fp16);
}

TEST_CASE("a problem that makes no sense is refused") {
  CHECK(message_of(resolve_problem({.heads = 3, .kv_heads = 2})) ==
        "3 query heads can't share 2 key/value heads evenly");
  CHECK(message_of(resolve_problem({.seq = 0})) ==
        "seq must be a whole number from 1 to 1099511627776, not 0");
}

}  // namespace
}  // namespace flashsim
