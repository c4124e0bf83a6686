// The cache as a user sees it: forms that agree, runs that repeat, and refusals.
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::Ran;
using flashsim::test::read_whole;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;
using nlohmann::json;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::string cache(const std::string& arguments) { return "cache " + arguments; }

json json_of(const std::string& arguments) {
  const Ran ran = run_flashsim(cache(arguments) + " --format json");
  INFO(arguments << "\n" << ran.err);
  REQUIRE(ran.status == 0);
  return json::parse(ran.out);
}

bool has(const std::string& text, const std::string& wanted) {
  return text.find(wanted) != std::string::npos;
}

}  // namespace

TEST_CASE("a model fills in heads and layers of a cache, and options win over it") {
  const json llama = json_of("--model llama-3.1-8b");
  CHECK(llama["input"]["layers"] == 32);
  CHECK(llama["input"]["heads"] == 32);
  CHECK(llama["input"]["kv_heads"] == 8);
  CHECK(llama["input"]["head_dim"] == 128);
  CHECK(llama["result"]["cache"]["token_bytes"] == 131072);
  CHECK(llama["result"]["cache"]["bytes"] == kGiB);
  CHECK(json_of("--model llama-3.1-8b --layers 1")["result"]["cache"]["bytes"] == kGiB / 32);
  CHECK(json_of("")["input"]["layers"] == 1);
}

TEST_CASE("the terminal, CSV and Markdown tell of a cache what JSON tells") {
  const std::string shape = "--model llama-3-8b --batch 4 --cache-dtype int8";
  const json result = json_of(shape)["result"];
  CHECK(result["cache"]["bytes"] == 2LL * 32 * 4 * 8 * 8192 * 130);
  const std::string table = run_flashsim(cache(shape)).out;
  CHECK(has(table, "\n  KV cache          2.03 GiB   fits the 80.0 GiB of the A100 80 GB\n"));
  const std::string csv = run_flashsim(cache(shape) + " --format csv").out;
  const auto csv_line = [&](const std::string& name, const json& value) {
    CHECK(has(csv, "\n" + name + "," + value.dump() + "\n"));
  };
  csv_line("cache,this,bytes", result["cache"]["bytes"]);
  csv_line("cache,this,row_bytes", result["cache"]["row_bytes"]);
  csv_line("memory,left,bytes", result["memory"]["left_bytes"]);
  csv_line("memory,that_fit,tokens", result["memory"]["tokens_that_fit"]);
  csv_line("prefill,standard,peak_intermediate_bytes", result["prefill"][0]["peak_intermediate_bytes"]);
  csv_line("decode,packed heads,step_bytes", result["decode"]["ways"][2]["step_bytes"]);
  csv_line("decode,standard,score_bytes", result["decode"]["ways"][0]["score_bytes"]);
  csv_line("input,,cache_group", 128);
  const std::string markdown = run_flashsim(cache(shape) + " --format markdown").out;
  CHECK(has(markdown, "| grouped: this one | 8 | 65.0 KiB | 520 MiB | 2.03 GiB | 2.54 % | 157 |"));
}

TEST_CASE("one sentence of the cache says which memory flash removes and which it leaves") {
  CHECK(has(run_flashsim("cache").out,
            "Flash removes S and P, which are gone after the call; it doesn't touch the KV cache, which "
            "stays.\n"));
}

TEST_CASE("bounds of a cache are called bounds, with the rate they come from") {
  CHECK(has(run_flashsim("cache").out,
            "by HBM bandwidth alone: a bound from the datasheet rate of 2.04 TB/s, not a measurement\n"));
}

TEST_CASE("the JSON of a cache follows its schema") {
  for (const char* arguments : {"", "--explain", "--cache-dtype int4 --cache-group 32 --kv-heads 1 --explain",
                                "--dtype fp64 --heads 1", "--seq 1 --head-dim 1 --batch 7 --cache-dtype int8",
                                "--dtype fp8 --gpu t4 --layers 80"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.cache-1").empty());
  }
  json changed = json_of("");
  changed["result"]["cache"]["bytes"] = 1.5;
  CHECK_FALSE(schema_violations(changed, "flashsim.cache-1").empty());
  changed = json_of("");
  changed["result"]["decode"].erase("flops");
  CHECK_FALSE(schema_violations(changed, "flashsim.cache-1").empty());
}

TEST_CASE("a JSON result repeats its cache, and options lie over it") {
  const TemporaryFolder folder;
  for (const char* shape :
       {"--seq 1000 --heads 6 --kv-heads 2 --dtype bf16 --gpu l4 --layers 5 --batch 3",
        "--cache-dtype int4 --cache-group 48 --head-dim 80", "--dtype fp8 --cache-dtype fp16 --explain"}) {
    INFO(shape);
    REQUIRE(run_shell("flashsim cache " + std::string(shape) + " --format json --out a.json", folder.path())
                .status == 0);
    const bool explains = std::string(shape).ends_with("--explain");
    CHECK(
        run_shell(std::string("flashsim cache --input a.json --format json") + (explains ? " --explain" : ""),
                  folder.path())
            .out == read_whole(folder / "a.json"));
  }
  REQUIRE(run_shell("flashsim cache --cache-dtype int4 --cache-group 48 --format json --out b.json",
                    folder.path())
              .status == 0);
  const auto over = [&](const std::string& more) {
    return json::parse(
        run_shell("flashsim cache --input b.json --format json " + more, folder.path()).out)["input"];
  };
  CHECK(over("--layers 7")["cache_group"] == 48);
  CHECK(over("--layers 7")["layers"] == 7);
  CHECK(over("--cache-dtype fp16")["cache_group"].is_null());
  CHECK(over("--dtype bf16")["cache_dtype"] == "int4");
}

TEST_CASE("--explain prints the formulas of a cache, whose numbers multiply to the value") {
  const json explained = json_of("--model llama-3-8b --explain");
  int found = 0;
  for (const json& e : explained["result"]["explanations"]) {
    if (e["figure"] != "cache.bytes") continue;
    ++found;
    CHECK(e["formula"] == "2·layers·B·Hkv·N·R");
    CHECK(e["numbers"] == "2 · 32 · 1 · 8 · 8192 · 256");
    CHECK(e["value"] == 2LL * 32 * 8 * 8192 * 256);
  }
  CHECK(found == 1);
  CHECK_FALSE(json_of("")["result"].contains("explanations"));
  CHECK(has(run_flashsim("cache --explain").out, "2·layers·B·Hkv·N·R"));
  CHECK(has(run_flashsim("cache --explain --format csv").out, "formula,cache.bytes,2·layers·B·Hkv·N·R,"));
}

TEST_CASE("a cache's options are refused with their value") {
  for (const char* option :
       {"--seq", "--batch", "--heads", "--kv-heads", "--head-dim", "--layers", "--cache-group"}) {
    for (const char* value : {"0", "-5", "abc", "nan", "1.5", "9223372036854775808"}) {
      CHECK(refusal(cache(std::string(option) + "=" + value)) ==
            std::string("error: ") + option + " must be a whole number from 1 to 1099511627776, not '" +
                value + "'\n");
    }
  }
  CHECK(refusal("cache --cache-dtype int3") ==
        "error: unknown cache type 'int3'\nhint: did you mean 'int8'? known: fp8, fp16, bf16, fp32, fp64, "
        "int8, "
        "int4\n");
  CHECK(refusal("cache --cache-group 64") ==
        "error: groups of 64 are for a quantized cache, and this one is fp16\n"
        "hint: choose --cache-dtype int8 or int4, or leave --cache-group out\n");
  CHECK(refusal("cache --seq 1099511627776") ==
        "error: a count of the KV cache leaves 64 bits (B 1 · H 32 · N 1099511627776 · d 128 · layers 1)\n"
        "hint: make the problem smaller (--seq, --batch, --layers, --heads, --head-dim)\n");
  CHECK(refusal("cache --heads 3 --kv-heads 2")
            .starts_with("error: 3 query heads can't share 2 key/value heads evenly\n"));
  CHECK(refusal("cache --gpu h10").starts_with("error: unknown GPU 'h10'\n"));
  CHECK(refusal("cache --model gtp2").starts_with("error: unknown model 'gtp2'\n"));
}

TEST_CASE("a cache takes no options that mean nothing to it") {
  CHECK(refusal("cache --algo flash").starts_with("error: unknown option '--algo'\n"));
  CHECK(refusal("--kv-seq 512 cache") == "error: cache takes no --kv-seq\n");
  CHECK(refusal("cache 8192") == "error: unexpected argument '8192'\n");
}
