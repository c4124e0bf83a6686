// JSON follows its schemas, repeats its run, and is written whole; terminals and colours.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;
using flashsim::test::read_whole;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;
using nlohmann::json;

json json_of(const std::string& arguments) {
  return json::parse(run_flashsim(arguments + " --format json").out);
}

}  // namespace

TEST_CASE("every command's JSON follows its schema") {
  for (const char* arguments :
       {"", "--algo standard --explain", "--algo eager --no-causal --dtype fp64 --gpu mi300x",
        "--algo flash1 --seq 1 --head-dim 1", "--seq 1048576", "--dtype fp8 --gpu t4",
        "--seq 5 --kv-seq 2 --heads 4 --kv-heads 2 --causal-alignment top-left",
        "--algo split-kv --seq 1 --kv-heads 8 --explain", "--algo split-kv --splits 5",
        "--algo block-sparse --pattern window:1024 --explain", "--algo block-sparse --pattern strided:3",
        "--algo memory-efficient", "--machine --seq 512",
        "--machine --algo split-kv --seq 1 --kv-seq 8192 --kv-heads 8 --launch-order longest-first",
        "--machine --algo block-sparse --pattern window:256 --seq 512 --key-order reverse",
        "--machine --algo memory-efficient --seq 512 --blocks-per-sm 1"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.account-1").empty());
  }
  for (const char* arguments :
       {"compare", "compare --tile-k 32 --explain", "compare --splits 3 --pattern strided:4",
        "compare --machine --seq 512 --overlap serial"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.compare-1").empty());
  }
  for (const char* arguments :
       {"three-token", "max-changes --algo flash1", "break-it --no-subtract-max --magnitude 30",
        "three-token --row 1 --compute f64"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(std::string("replay ") + arguments), "flashsim.replay-1").empty());
  }
  for (const char* section :
       {"", "algorithms", "machines", "models", "scenarios", "switches", "faults", "kernels", "devices"}) {
    INFO(section);
    CHECK(schema_violations(json_of(std::string("list ") + section), "flashsim.list-1").empty());
  }
}

TEST_CASE("every data file follows its schema") {
  int files = 0;
  for (const auto& [folder, schema] : {std::pair{"core/problem/machines", "flashsim.machine-1"},
                                       {"core/problem/models", "flashsim.model-1"},
                                       {"scenarios", "flashsim.scenario-1"}}) {
    for (const auto& entry : fs::directory_iterator(fs::path(FLASHSIM_SOURCE_DIR) / folder)) {
      INFO(entry.path().string());
      CHECK(schema_violations(json::parse(read_whole(entry.path())), schema).empty());
      ++files;
    }
  }
  CHECK(files >= 25);
}

TEST_CASE("the schemas see a missing key, an unknown one and a wrong type") {
  json account = json_of("");
  account["result"]["hbm"].erase("total_bytes");
  CHECK_FALSE(schema_violations(account, "flashsim.account-1").empty());
  account = json_of("");
  account["result"]["extra"] = 1;
  CHECK_FALSE(schema_violations(account, "flashsim.account-1").empty());
  account = json_of("");
  account["result"]["hbm"]["read_bytes"] = 1.5;
  CHECK_FALSE(schema_violations(account, "flashsim.account-1").empty());
  json replay = json_of("replay three-token");
  replay["result"]["frames"][0]["values"]["Q"][0][0] = "nan";
  CHECK_FALSE(schema_violations(replay, "flashsim.replay-1").empty());
}

TEST_CASE("a JSON result repeats its run, and options lie over it") {
  const TemporaryFolder folder;
  const std::string shape =
      "--algo flash1 --seq 1000 --kv-seq 1500 --heads 6 --kv-heads 2 --dtype bf16 --gpu l4 --sram 64KiB";
  REQUIRE(run_shell("flashsim " + shape + " --format json --out a.json", folder.path()).status == 0);
  CHECK(run_shell("flashsim --input a.json --format json", folder.path()).out ==
        read_whole(folder / "a.json"));
  CHECK(run_shell("flashsim --input a.json", folder.path()).out == run_flashsim(shape).out);
  const json changed =
      json::parse(run_shell("flashsim --input a.json --seq 64 --format json", folder.path()).out);
  CHECK(changed["input"]["seq"] == 64);
  CHECK(changed["input"]["kv_seq"] == 1500);

  REQUIRE(
      run_shell("flashsim compare --seq 300 --tile-q 32 --format json --out c.json", folder.path()).status ==
      0);
  CHECK(run_shell("flashsim compare --input c.json --format json", folder.path()).out ==
        read_whole(folder / "c.json"));

  REQUIRE(run_shell("flashsim replay break-it --tile-k 3 --magnitude 7 --no-rescale --compute f64 --format "
                    "json --out r.json",
                    folder.path())
              .status == 0);
  CHECK(run_shell("flashsim replay --input r.json --format json", folder.path()).out ==
        read_whole(folder / "r.json"));
}

TEST_CASE("values that aren't finite stay apart in JSON") {
  const json replay = json_of("replay break-it --no-subtract-max --magnitude 30");
  CHECK(replay["result"]["output"][0][0][0][0] == "NaN");
  CHECK(replay["result"]["verdict"] == "broken on purpose");
  const json token = json_of("replay three-token");
  bool minus_infinity = false;
  for (const json& frame : token["result"]["frames"]) {
    if (frame["operation"] == "mask" && frame["values"]["S"][0].back() == "-Infinity") minus_infinity = true;
  }
  CHECK(minus_infinity);
}

TEST_CASE("a file gets what standard output would, and an old file is replaced whole") {
  const TemporaryFolder folder;
  folder.file("x", "old");
  REQUIRE(run_shell("flashsim --out x", folder.path()).status == 0);
  CHECK(read_whole(folder / "x") == run_flashsim("").out);
  CHECK(folder.names() == std::vector<std::string>{"x"});
}

TEST_CASE("there is no colour where output is no terminal, and colour on a terminal unless NO_COLOR is set") {
  CHECK(run_flashsim("").out.find('\x1b') == std::string::npos);
  const TemporaryFolder folder;
  if (run_shell("command -v script", folder.path()).status != 0) return;
  const std::string terminal = "TERM=xterm script -qec ";
  CHECK(run_shell(terminal + "'flashsim list switches' /dev/null", folder.path()).out.find('\x1b') !=
        std::string::npos);
  CHECK(run_shell("NO_COLOR=1 " + terminal + "'flashsim list switches' /dev/null", folder.path())
            .out.find('\x1b') == std::string::npos);
}

TEST_CASE("notes break to the width of the terminal, and no word is lost") {
  const TemporaryFolder folder;
  if (run_shell("command -v script && command -v stty", folder.path()).status != 0) return;
  const std::string narrow =
      run_shell("TERM=dumb script -qec 'stty cols 80; flashsim' /dev/null", folder.path()).out;
  const auto words_of = [](const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  CHECK(words_of(narrow) == words_of(run_flashsim("").out));
  std::istringstream lines(
      narrow.substr(narrow.find("Memory"), narrow.find("Standard moves") - narrow.find("Memory")));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    const auto width =
        std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80 && c != '\r'; });
    CHECK(width <= 80);
  }
}

TEST_CASE("--step waits between pages and stops at q") {
  const TemporaryFolder folder;
  const auto all =
      run_shell("printf '\\n\\n\\n\\n\\n\\n' | flashsim replay three-token --step", folder.path());
  CHECK(all.status == 0);
  CHECK(all.out == run_flashsim("replay three-token").out);
  const auto some = run_shell("printf '\\nq\\n' | flashsim replay three-token --step", folder.path());
  CHECK(some.out.find("row 0") != std::string::npos);
  CHECK(some.out.find("truth") == std::string::npos);
}

TEST_CASE("a path works wherever a built-in name does, from any folder") {
  const TemporaryFolder folder;
  const std::string source = FLASHSIM_SOURCE_DIR;
  CHECK(run_shell("flashsim --gpu " + source + "/core/problem/machines/h100.json | head -1", folder.path())
            .out == run_flashsim("--gpu h100 | head -1").out);
  CHECK(run_shell("flashsim --model " + source + "/core/problem/models/gpt2.json", folder.path()).out ==
        run_flashsim("--model gpt2").out);
  CHECK(run_shell("flashsim replay " + source + "/scenarios/break-it.json", folder.path()).out ==
        run_flashsim("replay break-it").out);
}

TEST_CASE("help and version are done, not errors") {
  CHECK(run_flashsim("--help").status == 0);
  CHECK(run_flashsim("replay --help").out.find("--no-rescale") != std::string::npos);
  CHECK(run_flashsim("--version").out == "flashsim " FLASHSIM_VERSION "\n");
}

TEST_CASE("a run broken on purpose is done, and says that it is wrong") {
  const auto broken = run_flashsim("replay break-it --no-rescale --tile-k 2");
  CHECK(broken.status == 0);
  CHECK(broken.out.find("tiled WRONG") != std::string::npos);
}
