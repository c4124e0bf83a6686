// Parts and patterns as a user meets them: asked for, shown, refused, repeated, run.
#include <string>

#include <nlohmann/json.hpp>

#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/app/tensor_files.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::kFiles;
using flashsim::test::read_whole;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;
using flashsim::test::Tensors;
using nlohmann::json;

const std::string kDecode = "--algo split-kv --seq 1 --kv-seq 65536 --heads 32 --kv-heads 8 ";

bool has(const std::string& text, const std::string& wanted) {
  return text.find(wanted) != std::string::npos;
}

}  // namespace

TEST_CASE("a decoding step says into how many parts it took the keys, and why") {
  const auto ran = run_flashsim(kDecode + "--explain");
  CHECK(ran.status == 0);
  CHECK(has(ran.out, "tiles 16×128 · 12 parts"));
  CHECK(has(ran.out, "12 × 8 blocks on 108 SMs: 88.9 % at work over all waves, at best 100 %"));
  CHECK(has(ran.out, "least S ≤ min(128, SMs, Tc) with w/⌈w⌉ ≥ 0.85 · best, w = blocks·S / SMs"));
  CHECK(has(ran.out, "blocks, combine"));
  CHECK(has(ran.out, "predicted = counted"));
  const auto asked = run_flashsim(kDecode + "--splits 3");
  CHECK(has(asked.out, "· 3 parts"));
  CHECK(has(asked.out, "of 171 key tiles; asked for"));
}

TEST_CASE("a pattern's account says how many blocks are there, and that it is another function") {
  const auto ran = run_flashsim("--algo block-sparse --pattern window:1024");
  CHECK(ran.status == 0);
  CHECK(has(ran.out, "· window:1024 ·"));
  CHECK(has(ran.out, "1 016 of 4 096 a head, by window:1024"));
  CHECK(has(ran.out, "computes another function"));
}

TEST_CASE("a file's pattern must have a text for every query tile and a character for every key tile") {
  const TemporaryFolder folder;
  folder.file("p.json", R"({"schema": "flashsim.pattern/1", "rows": ["10", "01"]})");
  const std::string sparse = "--algo block-sparse --pattern p.json --heads 1 --no-causal ";
  CHECK(refusal(sparse + "--seq 384", folder) ==
        "error: pattern 'p.json' has 2 rows, and 384 queries in tiles of 128 need 3\n"
        "hint: 3 texts of 3 characters each, or other tiles: --tile-q, --tile-k\n");
  const auto ran = run_shell("flashsim " + sparse + "--seq 256 --format json", folder.path());
  REQUIRE(ran.status == 0);
  const json account = json::parse(ran.out);
  CHECK(schema_violations(account, "flashsim.account-1").empty());
  CHECK(account["input"]["pattern"] == json::parse(R"(["10", "01"])"));
  CHECK(account["result"]["pattern"]["kept_fraction"] == 0.5);
  CHECK(schema_violations(json::parse(read_whole(folder / "p.json")), "flashsim.pattern-1").empty());
  folder.file("bad.json", R"({"schema": "flashsim.pattern/1", "rows": ["1x"]})");
  CHECK(has(refusal("--algo block-sparse --pattern bad.json", folder), "rows[0] must be a text of 0 and 1"));
  CHECK(has(refusal("--algo block-sparse --pattern none.json", folder), "none.json"));
}

TEST_CASE("an option that means nothing for the algorithm, or has no sense, is one error line") {
  CHECK(refusal("--splits 2") ==
        "error: --splits means nothing for flash2, which doesn't split the keys\nhint: --algo split-kv\n");
  CHECK(refusal("run --algo standard --pattern window:3")
            .starts_with("error: --pattern means nothing for standard"));
  CHECK(refusal("--algo block-sparse").starts_with("error: --algo block-sparse needs a pattern"));
  for (const char* splits : {"0", "-3", "nan", "1.5", "99999999999999999999", "''"}) {
    CHECK(refusal(std::string("--algo split-kv --splits ") + splits).starts_with("error: --splits"));
  }
  for (const char* pattern : {"window:0", "strided:-1", "window:nan", "window", "''", "strided:1e30"}) {
    CHECK(refusal(std::string("--algo block-sparse --pattern ") + pattern).starts_with("error: --pattern"));
  }
  CHECK(has(refusal("--algo split-kv --splits 1099511627776 --seq 1099511627776"), "leaves 64 bits"));
  CHECK(has(refusal("--algo block-sparse --pattern window:1 --seq 1099511627776"), "too many for a pattern"));
  CHECK(has(refusal("run --algo split-kv --splits 1099511627776"), "needs"));
  CHECK(has(refusal("replay three-token --algo split-kv"), "split-kv can't be replayed step by step"));
  CHECK(has(refusal("run --algo split-kv --backward"), "not for split-kv"));
}

TEST_CASE("a result repeats its parts and its pattern") {
  const TemporaryFolder folder;
  folder.file("p.json", R"({"schema": "flashsim.pattern/1", "rows": ["10", "11"]})");
  for (const std::string& arguments :
       {kDecode, kDecode + "--splits 5", std::string("--algo block-sparse --pattern strided:3"),
        std::string("--algo block-sparse --pattern p.json --seq 256"),
        std::string("run --algo split-kv --seq 9 --kv-seq 70 --heads 4 --kv-heads 2 --head-dim 4 --tile-k 8"),
        std::string("run --algo block-sparse --pattern p.json --seq 32 --heads 1 --head-dim 4 --tile-q 16 "
                    "--tile-k 16")}) {
    INFO(arguments);
    const bool runs = arguments.starts_with("run ");
    REQUIRE(run_shell("flashsim " + arguments + " --format json --out a.json", folder.path()).status == 0);
    const json first = json::parse(read_whole(folder / "a.json"));
    CHECK(schema_violations(first, runs ? "flashsim.run-1" : "flashsim.account-1").empty());
    const json again = json::parse(
        run_shell(std::string("flashsim ") + (runs ? "run " : "") + "--input a.json --format json",
                  folder.path())
            .out);
    CHECK(again["input"] == first["input"]);
    CHECK(again["result"]["hbm"] == first["result"]["hbm"]);
    if (runs) CHECK(again["result"]["output"] == first["result"]["output"]);
  }
}

TEST_CASE("parts and patterns run on .npy files too") {
  const Tensors tensors;
  for (const char* method : {"--algo split-kv --splits 3 --tile-k 2",
                             "--algo block-sparse --pattern window:2 --tile-q 2 --tile-k 2"}) {
    for (const char* types : {"", " --compute f64", " --dtype bf16"}) {
      const json run = tensors.json_of(kFiles + method + types);
      CHECK(run["result"]["verdict"] == "right");
      CHECK(run["result"]["predicted_equals_counted"] == true);
    }
  }
}
