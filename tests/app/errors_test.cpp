// Bad input: one clear line, status 2, nothing on standard output and no file left behind.
#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::Ran;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::TemporaryFolder;

constexpr const char* kDimension = " must be a whole number from 1 to 1099511627776, not ";

}  // namespace

TEST_CASE("sizes that can't be are refused with their value") {
  for (const char* option :
       {"--seq", "--kv-seq", "--batch", "--heads", "--kv-heads", "--head-dim", "--tile-q", "--tile-k"}) {
    for (const char* value :
         {"0", "-5", "abc", "9223372036854775808", "1.5", "1e3", "8192x", "2147483648000000"}) {
      const std::string text = std::string("error: ") + option + kDimension + "'" + value + "'\n";
      CHECK(refusal(std::string(option) + " " + value) == text);
      CHECK(refusal(std::string(option) + "=" + value) == text);
    }
    CHECK(refusal(std::string(option) + " ''") == std::string("error: ") + option + kDimension + "''\n");
  }
}

TEST_CASE("heads that can't be shared are refused") {
  CHECK(refusal("--heads 3 --kv-heads 2") ==
        "error: 3 query heads can't share 2 key/value heads evenly\n"
        "hint: the number of query heads must be a multiple of the number of key/value heads\n");
}

TEST_CASE("tiles that don't fit are refused with what they need, what there is, and tiles that fit") {
  CHECK(refusal("--gpu rtx-4090 --dtype bf16 --head-dim 256 --tile-q 128 --tile-k 64") ==
        "error: tiles 128×64 need 131072 B of shared memory for Q, K and V, and a block's limit on GeForce "
        "RTX 4090 is "
        "101376 B\n"
        "hint: tiles 128×32 fit, with 98304 B\n");
  CHECK(refusal("--sram 1KiB --tile-k 8") ==
        "error: tiles 1×8 need 4352 B of shared memory for Q, K and V, and the limit given by --sram is 1024 "
        "B\n"
        "hint: tiles 1×1 fit, with 768 B\n");
  CHECK(refusal("--sram 100") ==
        "error: no tiles fit: one row each of Q, K and V needs 768 B of shared memory, and the limit given "
        "by --sram is "
        "100 B\n");
}

TEST_CASE("unknown names come with the nearest known one") {
  CHECK(refusal("--algo flsh") ==
        "error: unknown algorithm 'flsh'\nhint: did you mean 'flash'? known: standard, eager, "
        "three-pass, three-pass-stored, flash1, flash2, memory-efficient, split-kv, block-sparse, flash\n");
  CHECK(refusal("--gpu h10")
            .starts_with(
                "error: unknown GPU 'h10'\nhint: did you mean 'h100'? known: a100, a100-80, a100-40, "));
  CHECK(
      refusal("--model gtp2").starts_with("error: unknown model 'gtp2'\nhint: did you mean 'gpt2'? known: "));
  CHECK(refusal("--dtype fp61").starts_with("error: unknown type 'fp61'\nhint: did you mean 'fp16'? "));
  CHECK(refusal("--causal-alignment left") ==
        "error: unknown causal alignment 'left'\nhint: known: bottom-right, top-left\n");
  CHECK(refusal("--format jsn").starts_with("error: unknown format 'jsn'\nhint: did you mean 'json'? "));
  CHECK(refusal("replay three-tokens")
            .starts_with("error: unknown scenario 'three-tokens'\nhint: did you mean 'three-token'? "));
  CHECK(refusal("list machine")
            .starts_with("error: unknown section 'machine'\nhint: did you mean 'machines'? "));
  CHECK(refusal("comprae").starts_with("error: unknown command 'comprae'\nhint: did you mean 'compare'? "));
  CHECK(refusal("--sq 8192") == "error: unknown option '--sq'\nhint: did you mean '--seq'?\n");
  CHECK(refusal("replay three-token --sep").starts_with("error: unknown option '--sep'\n"));
}

TEST_CASE("a missing value is told, even where another option stands in its place") {
  CHECK(refusal("--seq") == "error: --seq needs a value\n");
  CHECK(refusal("--seq --algo flash") == "error: --seq needs a value\n");
}

TEST_CASE("switches take no value and don't contradict each other") {
  for (const char* name : {"--causal", "--no-causal", "--count", "--explain"}) {
    for (const char* value : {"maybe", "99999999999999999999"}) {
      CHECK(refusal(std::string(name) + "=" + value) == std::string("error: ") + name + " takes no value\n");
    }
  }
  CHECK(refusal("replay three-token --step=x") == "error: --step takes no value\n");
  CHECK(refusal("--causal --no-causal") == "error: give --causal or --no-causal, not both\n");
}

TEST_CASE("an error has its status where nobody can read it") {
  const TemporaryFolder folder;
  CHECK(run_shell("flashsim --seq 0 2>&-", folder.path()).status == 2);
  if (std::filesystem::exists("/dev/full"))
    CHECK(run_shell("flashsim --seq 0 2>/dev/full", folder.path()).status == 2);
}

TEST_CASE("a file that can't be written is told before the work") {
  CHECK(refusal("--seq 4000000 --count --tile-q 16 --tile-k 16 --out nowhere/x") ==
        "error: can't write 'nowhere/x': No such file or directory\n");
}

TEST_CASE("a key that stands twice, and text of several lines, are refused") {
  const TemporaryFolder folder;
  folder.file("twice.json", R"({"batch": 1, "batch": 2})");
  CHECK(refusal("--input twice.json", folder) == "error: 'twice.json': key batch stands twice\n");
  folder.file("lines.json", R"({"schema": "flashsim.scenario/1", "title": "a\u001b[31m",
    "tensors": {"scores": [[1]], "v": [[1]]}})");
  CHECK(refusal("replay lines.json", folder)
            .starts_with("error: 'lines.json': title must be a text of one line, not "));
  folder.file("half.json", R"({"schema": "flashsim.account/1", "result": {}})");
  CHECK(refusal("--input half.json", folder) == "error: 'half.json': input is missing\n");
}

TEST_CASE("options before a command that doesn't take them are refused") {
  CHECK(refusal("--seq 512 replay three-token") == "error: replay takes no --seq\n");
}

TEST_CASE("sizes of memory are refused in other units") {
  CHECK(refusal("--sram 192KB") ==
        "error: --sram must be a size such as 192KiB, not '192KB'\n"
        "hint: write bytes as a plain number, or with KiB, MiB or GiB: 65536, 192KiB, 1.5MiB\n");
}

TEST_CASE("counts that leave 64 bits are an error, not a wrong number") {
  CHECK(refusal("--seq 1099511627776")
            .starts_with("error: a count of flash2 leaves 64 bits (B 1 · H 32 · N 1099511627776"));
  CHECK(refusal("compare --seq 1099511627776").starts_with("error: a count of standard leaves 64 bits"));
}

TEST_CASE("a file that can't be written leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK(refusal("--out nowhere/x.json", folder) ==
        "error: can't write 'nowhere/x.json': No such file or directory\n");
  CHECK(refusal("--out .", folder) == "error: can't write '.': Is a directory\n");
}

TEST_CASE("a full disk is an error") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryFolder folder;
  const Ran ran = run_shell("flashsim >/dev/full", folder.path());
  CHECK(ran.status == 2);
  CHECK(ran.err == "error: can't write to standard output: No space left on device\n");
  CHECK(run_shell("flashsim --out /dev/full", folder.path()).status == 2);
}

TEST_CASE("an input that can't be read is refused with its name, and a wrong one with its path") {
  const TemporaryFolder folder;
  CHECK(refusal("--input none.json", folder) == "error: can't read 'none.json': No such file or directory\n");
  CHECK(refusal("--input .", folder) == "error: can't read '.': Is a directory\n");
  folder.file("cut.json", "{\"input\": {\"seq\": 8");
  CHECK(refusal("--input cut.json", folder) ==
        "error: 'cut.json' isn't valid JSON: it ends too early, at line 1, column 20\n");
  folder.file("key.json", R"({"input": {"seq": 8, "sequence": 9}})");
  CHECK(refusal("--input key.json", folder)
            .starts_with("error: 'key.json': unknown key input.sequence\nhint: "));
  folder.file("type.json", R"({"input": {"seq": "8"}})");
  CHECK(refusal("--input type.json", folder) ==
        "error: 'type.json': input.seq must be a whole number, not \"8\"\n");
  folder.file("zero.json", R"({"input": {"seq": 0}})");
  CHECK(refusal("--input zero.json", folder) ==
        std::string("error: 'zero.json': input.seq") + kDimension + "0\n");
  folder.file("list.json", "[1]");
  CHECK(refusal("--input list.json", folder).starts_with("error: 'list.json' must be an object, not [1]"));
}

TEST_CASE("a scenario that is wrong is refused") {
  const TemporaryFolder folder;
  folder.file("key.json", R"({"schema": "flashsim.scenario/1", "tensor": {}})");
  CHECK(refusal("replay ./key.json", folder).starts_with("error: "));
  folder.file("shape.json",
              R"({"schema": "flashsim.scenario/1", "tensors": {"scores": [[1, 2], [3]], "v": [[1], [2]]}})");
  CHECK(refusal("replay shape.json", folder) ==
        "error: 'shape.json': tensors.scores[1] has 1 elements where 2 are expected\n");
  folder.file("cut.json", "{\"schema\"");
  CHECK(refusal("replay cut.json", folder)
            .starts_with("error: 'cut.json' isn't valid JSON: it ends too early, "));
  CHECK(refusal("replay none.json", folder) == "error: can't read 'none.json': No such file or directory\n");
}

TEST_CASE("replay options are checked") {
  CHECK(refusal("replay three-token --row 3") == "error: --row must be a whole number from 0 to 2, not 3\n");
  CHECK(refusal("replay three-token --compute f16") == "error: --compute must be f32 or f64, not 'f16'\n");
  CHECK(refusal("replay three-token --magnitude nan") ==
        "error: --magnitude must be a finite number, not 'nan'\n");
  CHECK(refusal("replay three-token --algo standard")
            .starts_with(
                "error: --algo must be a tiled algorithm with an online softmax here, not 'standard'\n"));
  CHECK(refusal("replay three-token --step --format json")
            .starts_with("error: --step shows a replay on the terminal"));
  CHECK(refusal("replay") ==
        "error: replay needs a scenario: a name or a file\nhint: flashsim list scenarios\n");
}

TEST_CASE("what a message quotes can't break its line") {
  CHECK(refusal("--algo \"$(printf 'a\\nb\\033[31m')\"")
            .starts_with("error: unknown algorithm 'a\\x0ab\\x1b[31m'\n"));
}
