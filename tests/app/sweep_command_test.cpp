// flashsim sweep as a user meets it: forms that agree, plots, and refusals.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::read_whole;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;
using nlohmann::json;

std::vector<std::vector<std::string>> csv_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

std::ptrdiff_t count_of(const std::string& text, const std::string& part) {
  std::ptrdiff_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

constexpr const char* kSweep = "sweep --seq 512:8192:x2 --sram 16KiB,64KiB --algo standard,flash2";

}  // namespace

TEST_CASE("a sweep's JSON follows its schema, impossible points and all") {
  for (const char* arguments :
       {"", "--seq 1:64:x1.5 --causal yes,no", "--heads 3,4 --kv-heads 2 --tile-q 1000,16 --sram 1KiB,64KiB",
        "--algo standard,eager,flash1,flash2 --gpu t4,mi300x --dtype fp8,fp64 --head-dim 1,64"}) {
    INFO(arguments);
    const json sweep = json::parse(run_flashsim(std::string("sweep --format json ") + arguments).out);
    CHECK(schema_violations(sweep, "flashsim.sweep-1").empty());
  }
  json wrong = json::parse(run_flashsim("sweep --format json").out);
  wrong["result"]["points"][0].erase("hbm_total_bytes");
  CHECK_FALSE(schema_violations(wrong, "flashsim.sweep-1").empty());
}

TEST_CASE("CSV and JSON give the same figures, which are those of a comparison") {
  // All that a comparison takes where no pattern is asked for.
  const std::string all =
      "standard,eager,three-pass,three-pass-stored,flash1,flash2,memory-efficient,split-kv";
  const auto rows = csv_of(run_flashsim("sweep --algo " + all + " --seq 700 --format csv").out);
  const auto compared = csv_of(run_flashsim("compare --seq 700 --format csv").out);
  REQUIRE(rows.size() == 9);
  REQUIRE(compared.size() == 9);
  int shared = 0;
  for (std::size_t c = 0; c < compared[0].size(); ++c) {
    const auto at = std::find(rows[0].begin(), rows[0].end(), compared[0][c]);
    if (at == rows[0].end()) continue;
    ++shared;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      CHECK(rows[r][static_cast<std::size_t>(at - rows[0].begin())] == compared[r][c]);
    }
  }
  CHECK(shared == 22);  // all but predicted_equals_counted

  const json points =
      json::parse(run_flashsim("sweep --algo " + all + " --seq 700 --format json").out)["result"]["points"];
  for (std::size_t r = 1; r < rows.size(); ++r) {
    for (std::size_t c = 1; c < 6; ++c) CHECK(points[r - 1][rows[0][c]].dump() == rows[r][c]);
    CHECK(points[r - 1]["parameters"]["algorithm"] == rows[r][0]);
  }
}

TEST_CASE("an impossible point is a row with its reason, in every form") {
  const std::string arguments = "sweep --heads 3,4 --kv-heads 2";
  const std::string reason = "3 query heads can't share 2 key/value heads evenly";
  CHECK(run_flashsim(arguments).status == 0);
  CHECK(run_flashsim(arguments).out.find(reason) != std::string::npos);
  CHECK(run_flashsim(arguments).out.find("2 points, 1 of them impossible") != std::string::npos);
  const auto rows = csv_of(run_flashsim(arguments + " --format csv").out);
  CHECK(rows[1].size() == rows[0].size());
  CHECK(rows[1].back() == reason);
  CHECK(json::parse(run_flashsim(arguments + " --format json").out)["result"]["points"][0]["error"] ==
        reason);
}

TEST_CASE("a sweep's JSON repeats it, and options lie over it") {
  const TemporaryFolder folder;
  REQUIRE(
      run_shell(std::string("flashsim ") + kSweep + " --format json --out s.json", folder.path()).status ==
      0);
  CHECK(run_shell("flashsim sweep --input s.json --format json", folder.path()).out ==
        read_whole(folder / "s.json"));
  const json over =
      json::parse(run_shell("flashsim sweep --input s.json --algo flash1 --format json", folder.path()).out);
  CHECK(over["input"]["algorithm"] == json({"flash1"}));
  CHECK(over["result"]["points"].size() == 10);
}

TEST_CASE("both plots come from the same report, and the Vega-Lite data are its figures") {
  const TemporaryFolder folder;
  const auto ran = run_shell(
      std::string("flashsim ") + kSweep + " --format json --plot a.svg --plot b.vl.json --plot c.svg",
      folder.path());
  REQUIRE(ran.status == 0);
  CHECK(folder.names() == std::vector<std::string>{"a.svg", "b.vl.json", "c.svg"});
  const std::string svg = read_whole(folder / "a.svg");
  CHECK(svg == read_whole(folder / "c.svg"));
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
  CHECK(svg.find(">16 GiB<") != std::string::npos);
  CHECK(count_of(svg, "<circle") == 20);
  CHECK(count_of(svg, "<") == count_of(svg, ">"));

  const json plot = json::parse(read_whole(folder / "b.vl.json"));
  CHECK(plot["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json");
  CHECK(plot["encoding"]["x"]["field"] == "seq");
  CHECK(plot["encoding"]["x"]["scale"]["type"] == "log");
  CHECK(plot["encoding"]["y"]["scale"]["type"] == "log");
  std::vector<std::int64_t> drawn;
  for (const json& value : plot["data"]["values"]) drawn.push_back(value["hbm_total_bytes"]);
  std::vector<std::int64_t> reported;
  const json report = json::parse(ran.out);
  for (const json& point : report["result"]["points"]) {
    reported.push_back(point["hbm_total_bytes"]);
  }
  std::sort(drawn.begin(), drawn.end());
  std::sort(reported.begin(), reported.end());
  CHECK(drawn == reported);
}

TEST_CASE("--x, --y and --series choose what is drawn; the rest stays at its first value") {
  const TemporaryFolder folder;
  REQUIRE(run_shell(std::string("flashsim ") + kSweep +
                        " --plot p.vl.json --x sram --y flops_per_hbm_byte --series algo",
                    folder.path())
              .status == 0);
  const json plot = json::parse(read_whole(folder / "p.vl.json"));
  CHECK(plot["data"]["values"].size() == 4);
  CHECK(plot["encoding"]["x"]["field"] == "sram_bytes");
  CHECK(plot["encoding"]["y"]["field"] == "flops_per_hbm_byte");
  CHECK(plot["title"]["subtitle"].get<std::string>().find("N 512") != std::string::npos);
}

TEST_CASE("a step draws linear axes, and an impossible point leaves a gap") {
  const TemporaryFolder folder;
  REQUIRE(run_shell("flashsim sweep --seq 100:500:+100 --plot p.vl.json", folder.path()).status == 0);
  CHECK(json::parse(read_whole(folder / "p.vl.json"))["encoding"]["x"]["scale"]["type"] == "linear");
  REQUIRE(
      run_shell("flashsim sweep --tile-q 32:2048:x2 --plot g.vl.json --plot g.svg", folder.path()).status ==
      0);
  int gaps = 0;
  const json plot = json::parse(read_whole(folder / "g.vl.json"));
  for (const json& value : plot["data"]["values"]) {
    gaps += value["hbm_total_bytes"].is_null() ? 1 : 0;
  }
  CHECK(gaps == 2);  // 1024 and 2048 rows of 256 bytes exceed the A100's 163 KiB
  CHECK(count_of(read_whole(folder / "g.svg"), "<circle") == 5);
}

TEST_CASE("text in a picture is escaped") {
  const TemporaryFolder folder;
  REQUIRE(run_shell("cp '" FLASHSIM_SOURCE_DIR "/core/problem/machines/t4.json' './<&\">.json' && "
                    "flashsim sweep --gpu './<&\">.json,t4' --seq 64:256:x2 --plot e.svg",
                    folder.path())
              .status == 0);
  const std::string svg = read_whole(folder / "e.svg");
  CHECK(svg.find("./&lt;&amp;&quot;&gt;.json") != std::string::npos);
  CHECK(svg.find("<&\">") == std::string::npos);
}

TEST_CASE("sweeps that can't be are refused, and nothing is written") {
  CHECK(refusal("sweep --seq 8:4:x2") ==
        "error: --seq runs backwards: '8:4:x2'\nhint: write the smaller number first: 4:8:x2\n");
  CHECK(refusal("sweep --seq 1:1000:1 --batch 1:1000:1")
            .starts_with("error: the sweep has 1 000 000 points, and at most 100 000 are allowed\n"));
  CHECK(refusal("sweep --algo flash2,flsh").starts_with("error: unknown algorithm 'flsh'\n"));
  CHECK(refusal("sweep --gpu a100,h101").starts_with("error: unknown GPU 'h101'\n"));
  CHECK(refusal("sweep --seq") == "error: --seq needs a value\n");
  CHECK(refusal("sweep --seq 1,2 --plot") == "error: --plot needs a value\n");
  CHECK(refusal("sweep --causal yes --no-causal")
            .starts_with("error: give --causal or --no-causal, not both\n"));
  CHECK(refusal("--count sweep") == "error: sweep takes no --count\n");
}

TEST_CASE("plots that can't be are refused before or after the work, and nothing is written") {
  const std::string ends = "error: --plot must end in .svg or .vl.json, not ";
  CHECK(refusal("sweep --seq 1,2 --plot a.png").starts_with(ends + "'a.png'\n"));
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --plot a.json").starts_with(ends + "'a.json'\n"));
  CHECK(refusal("sweep --seq 1,2 --plot no/a.svg") ==
        "error: can't write 'no/a.svg': No such file or directory\n");
  CHECK(refusal("sweep --x seq") ==
        "error: --x, --y and --series say what --plot draws, and there is no --plot\n");
  CHECK(refusal("sweep --plot a.svg").starts_with("error: nothing to plot over: no number is swept\n"));
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --x heads")
            .starts_with("error: --x names heads, which isn't swept\n"));
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --x sqe").starts_with("error: unknown parameter 'sqe'\n"));
  CHECK(refusal("sweep --dtype fp16,fp32 --seq 1,2 --plot a.svg --x dtype") ==
        "error: --x must be a number, and dtype isn't one\n");
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --y hbm").starts_with("error: unknown figure 'hbm'\n"));
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --y fits_memory") ==
        "error: --y must be a number, and fits_memory is yes or no\n");
  CHECK(refusal("sweep --seq 1,2 --plot a.svg --series seq") ==
        "error: seq can't be both --x and --series\n");
  CHECK(refusal("sweep --seq 1:50:1 --batch 1:40:1 --plot a.svg")
            .starts_with("error: 40 lines can't be told apart: at most 24 are drawn\n"));
}

TEST_CASE("the title says which pass it is, and a swept pass is a column") {
  const auto title = [](const std::string& arguments) {
    const std::string out = run_flashsim("sweep --seq 64 --heads 1 " + arguments).out;
    return out.substr(0, out.find("  "));
  };
  CHECK(title("") == "FlashAttention-2, forward, over one point");
  CHECK(title("--pass backward") == "FlashAttention-2, backward, over one point");
  CHECK(title("--pass forward,both") == "FlashAttention-2, over pass");
  const auto rows =
      csv_of(run_flashsim("sweep --seq 64 --heads 1 --pass forward,backward,both --format csv").out);
  REQUIRE(rows.size() == 4);
  const auto at = std::find(rows[0].begin(), rows[0].end(), "hbm_total_bytes") - rows[0].begin();
  const auto total = [&](std::size_t row) { return std::stoll(rows[row][static_cast<std::size_t>(at)]); };
  CHECK(total(1) + total(2) == total(3));
}

TEST_CASE("parts of the keys are swept, and what they mean nothing for is a row with its reason") {
  const json sweep = json::parse(
      run_flashsim("sweep --algo split-kv,flash2 --seq 1 --kv-seq 4096 --splits auto,1,4 --format json").out);
  CHECK(schema_violations(sweep, "flashsim.sweep-1").empty());
  CHECK(sweep.at("result").at("points").size() == 6);
  CHECK(run_flashsim("sweep --algo split-kv,flash2 --seq 1 --splits 0").status == 2);
}
