// flashsim run as a user sees it: what it prints, writes, repeats, and refuses.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/npy.hpp"
#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/app/tensor_files.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;
using flashsim::NpyRow;
using flashsim::Tensor4;
using flashsim::test::kFiles;
using flashsim::test::Ran;
using flashsim::test::read_whole;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;
using flashsim::test::Tensors;
using nlohmann::json;

const std::string kSmall = "run --seq 40 --kv-seq 56 --batch 2 --heads 4 --kv-heads 2 --head-dim 8 ";

json json_of(const std::string& arguments, int status = 0) {
  const Ran ran = run_flashsim(arguments + " --format json");
  INFO(arguments << "\n" << ran.err);
  REQUIRE(ran.status == status);
  return json::parse(ran.out);
}

bool has(const std::string& text, const std::string& wanted) {
  return text.find(wanted) != std::string::npos;
}

/// A run's JSON without what another run of the same differs in.
json timeless(json run) {
  for (json* pass : {&run["result"], &run["result"]["backward"]}) {
    if (pass->is_null()) continue;
    pass->erase("seconds");
    pass->erase("gflops");
  }
  return run;
}

}  // namespace

TEST_CASE("a run prints what went in, how right it is, how fast it was and what it moved") {
  const std::string text = run_flashsim(kSmall + "--threads 2 --dtype bf16 --backward").out;
  CHECK(text.starts_with(
      "FlashAttention-2 forward and backward   B 2 · H 4 · Hkv 2 · N 40 · Nkv 56 · d 8 · bf16 stored, fp32 "
      "computed · causal (bottom-right) · tiles 128×128 · 2 threads, "));
  for (const char* part :
       {"\n  Q, K, V   drawn   seed 0, |x| < 1\n", "\n  dO        drawn   after them\n",
        "\nAgainst float64 truth", "\n  O  ", "\n  L  logsumexp  ", "\n  dQ  ", "\n  dK  ", "\n  dV  ",
        "\nright: all 320 rows are within rounding of the truth\n", "\n  forward ",
        "FLOP/s: ", "4·d for each visible pair: Q Kᵀ and P V\n",
        "10·d for each visible pair: S again, dV, dP, dQ and dK\n", "\nHBM traffic forward ",
        "\npredicted = counted, to the byte, over 104 steps\n", "\nHBM traffic backward ", "\n  dQ sum  ",
        "\nThe tolerance is what rounding alone may do at worst; --explain derives it.\n"}) {
    INFO(part << "\n" << text);
    CHECK(has(text, part));
  }
  const std::string explained = run_flashsim(kSmall + "--backward --explain").out;
  CHECK(has(explained, "\nTolerance\n  E   "));
  CHECK(has(explained, "\nTolerance of the gradients\n"));
  CHECK(has(explained, "absolute error of a score: ε·(d + 5)·A"));
}

TEST_CASE("a run's JSON follows its schema, whatever ran") {
  const Tensors tensors;
  for (const std::string& arguments :
       {kSmall, kSmall + "--backward --dtype fp16 --algo standard", kSmall + "--algo eager --compute f64",
        kSmall + "--algo flash1 --sram 1KiB", std::string("run three-token --backward"),
        std::string("run break-it --no-rescale --tile-k 3"),
        std::string("run break-it --no-subtract-max --magnitude 30"),
        kSmall + "--fault unmasked-padding --tile-k 48", kSmall + "--dtype bf16 --accumulate storage",
        kSmall + "--scale 1e30", std::string("run --seq 1100 --heads 1 --head-dim 8"),
        std::string("run --seq 5 --kv-seq 2 --heads 1 --head-dim 2 --scale 0")}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.run-1").empty());
  }
  CHECK(schema_violations(tensors.json_of(kFiles + "--backward --do do.npy --save out"), "flashsim.run-1")
            .empty());
  json run = json_of(kSmall);
  run["result"]["rows"].erase("total");
  CHECK_FALSE(schema_violations(run, "flashsim.run-1").empty());
  run = json_of(kSmall);
  run["result"]["output"][0][0][0][0] = "nan";
  CHECK_FALSE(schema_violations(run, "flashsim.run-1").empty());
}

TEST_CASE("the JSON of a run tells everything that the command promises") {
  const json run = json_of(kSmall + "--threads 3");
  CHECK(run["schema"] == "flashsim.run/1");
  const json& input = run["input"];
  CHECK(input["algorithm"] == "flash2");
  CHECK(input["seed"] == 0);
  CHECK(input["magnitude"] == 1.0);
  CHECK(input["compute"] == "fp32");
  CHECK(input["dtype"] == "fp32");
  CHECK(input["threads"] == 3);
  CHECK(input["sram_bytes"].is_null());
  CHECK(input["scenario"].is_null());
  CHECK(input["fault"].is_null());
  const json& result = run["result"];
  CHECK(result["verdict"] == "right");
  CHECK(result["threads"] == 3);
  CHECK(result["predicted_equals_counted"] == true);
  CHECK(result["first_fault"].is_null());
  CHECK(result["rows"]["checked"] == 320);
  CHECK(result["rows"]["total"] == 320);
  CHECK(result["rows"]["sampled"] == false);
  CHECK(result["rows"]["wrong"] == 0);
  CHECK(result["seconds"].get<double>() > 0);
  CHECK(result["gflops"].get<double>() > 0);
  CHECK(result["error"]["max_abs"].get<double>() <= result["tolerance"]["output"].get<double>());
  CHECK(result["lse_error"]["max_abs"].get<double>() <= result["tolerance"]["lse"].get<double>());
  CHECK(result["error"]["max_ulp"].get<double>() > 0);
  CHECK(result["output"].size() == 2);
  CHECK(result["output"][1][3][39].size() == 8);
  CHECK(result["lse"][1][3].size() == 40);
  CHECK(result["backward"].is_null());
  // Beyond 4096 numbers the result stays out.
  const json large = json_of("run --seq 1025 --heads 1 --head-dim 4");
  CHECK(large["result"]["output"].is_null());
  CHECK(large["result"]["lse"].is_null());
  CHECK(json_of("run --seq 1024 --heads 1 --head-dim 4")["result"]["output"].is_array());
}

TEST_CASE("an account and a run of the same options count the same bytes") {
  for (const char* algorithm : {"standard", "eager", "flash1", "flash2"}) {
    const std::string shape =
        std::string("--seq 300 --heads 4 --head-dim 32 --dtype fp16 --algo ") + algorithm;
    INFO(shape);
    CHECK(json_of("run " + shape)["result"]["hbm"] == json_of(shape)["result"]["hbm"]);
  }
}

TEST_CASE("a run repeats by its JSON, to the bit, and options lie over it") {
  const Tensors tensors;
  for (const std::string& arguments :
       {kSmall + "--seed 5 --magnitude 2 --backward", std::string("run break-it --no-rescale --tile-k 3"),
        std::string("run break-it --no-subtract-max --magnitude 30"),
        kSmall + "--dtype bf16 --accumulate storage --fault finite-mask",
        "run " + kFiles + "--backward --do do.npy --scale 0.5"}) {
    INFO(arguments);
    const auto& folder = tensors.folder();
    REQUIRE(run_shell("flashsim " + arguments + " --format json --out r.json", folder.path()).status == 0);
    const json again = json::parse(run_shell("flashsim run --input r.json --format json", folder.path()).out);
    CHECK(timeless(again) == timeless(json::parse(read_whole(folder / "r.json"))));
  }
  const json changed = json::parse(
      run_shell("flashsim run --input r.json --no-causal --format json", tensors.folder().path()).out);
  CHECK(changed["input"]["causal"] == false);
  CHECK(changed["input"]["scale"] == 0.5);
  CHECK(changed["input"]["q"] == "q.npy");
}

TEST_CASE("threads change nothing but the time") {
  json one = timeless(json_of(kSmall + "--backward --threads 1"));
  json many = timeless(json_of(kSmall + "--backward --threads 5"));
  for (json* run : {&one, &many}) {
    (*run)["input"].erase("threads");
    (*run)["result"].erase("threads");
  }
  CHECK(one == many);
}

TEST_CASE("files tell batch, heads, lengths, depth and type") {
  const Tensors tensors;
  const json run = tensors.json_of(kFiles);
  CHECK(run["input"]["batch"] == 1);
  CHECK(run["input"]["heads"] == 2);
  CHECK(run["input"]["seq"] == 5);
  CHECK(run["input"]["kv_seq"] == 7);
  CHECK(run["input"]["head_dim"] == 4);
  CHECK(run["input"]["compute"] == "fp32");
  CHECK(run["input"]["seed"].is_null());
  CHECK(run["result"]["verdict"] == "right");
  CHECK(tensors.json_of("--q wide.npy --k k.npy --v v.npy")["input"]["compute"] == "fp64");
  CHECK(tensors.json_of("--q wide.npy --k k.npy --v v.npy --compute f32")["input"]["dtype"] == "fp32");
  CHECK(tensors.json_of("--q flat.npy --k flat_kv.npy --v flat_kv.npy")["input"]["heads"] == 1);
  CHECK(tensors.json_of("--q q.npy --k flat_kv.npy --v flat_kv.npy")["input"]["kv_heads"] == 1);
  // The options may repeat what the files say.
  CHECK(tensors.json_of(kFiles + "--seq 5 --kv-seq 7 --heads 2 --head-dim 4")["input"]["seq"] == 5);
  // Without --do the output's gradient is drawn.
  const json backward = tensors.json_of(kFiles + "--backward --seed 4 --magnitude 2");
  CHECK(backward["input"]["seed"] == 4);
  CHECK(backward["input"]["magnitude"] == 2.0);
  CHECK(backward["result"]["gradients"]["dq"][0][1][4].size() == 4);
}

TEST_CASE("a broken run is done, and says which row and tile first went wrong, how many, and why") {
  const Ran broken = run_flashsim("run break-it --no-rescale --tile-k 3");
  CHECK(broken.status == 0);
  CHECK(has(broken.out, "· NOT rescaled\n"));
  CHECK(has(
      broken.out,
      "\nbroken on purpose: O is WRONG on 1 of 1 rows, L on 1 of 1\n"
      "\n"
      "  first wrong   row 0, in query tile 0 after key tile 1\n"
      "  value         O[0] is 4.10713, and the truth over the keys seen so far is 4.8443, give or take "));
  CHECK(
      has(broken.out,
          "\n  why           r was 1, so what earlier tiles left in l and O keeps its old reference wherever "
          "the maximum rose\n"));
  const json run = json_of("run break-it --no-rescale --tile-k 3");
  CHECK(run["result"]["verdict"] == "broken on purpose");
  CHECK(run["result"]["first_fault"]["row"] == 0);
  CHECK(run["result"]["first_fault"]["query_tile"] == 0);
  CHECK(run["result"]["first_fault"]["key_tile"] == 1);
  CHECK(run["result"]["first_fault"]["column"] == 0);
  CHECK(run["result"]["rows"]["wrong"] == 1);
  CHECK(run["result"]["predicted_equals_counted"] == true);

  CHECK(has(run_flashsim("run break-it --no-rescale --tile-k 8").out,
            "\nright: the one row is within rounding of the truth; nothing broke: one key tile holds all 8 "
            "keys, so there is no state to bring along\n"));
  const json overflow = json_of("run break-it --no-subtract-max --magnitude 30");
  CHECK(overflow["result"]["output"][0][0][0][0] == "NaN");
  CHECK(overflow["result"]["error"]["max_abs"] == "NaN");
}

TEST_CASE("every fault breaks something, is named on the page, and leaves the counted bytes as they are") {
  const std::string shape = "run --seq 70 --heads 2 --head-dim 8 --magnitude 6 --tile-q 16 --tile-k 16 ";
  const json right = json_of(shape);
  for (const char* fault : {"rescale-l-only", "rescale-o-only", "inverted-rescale", "reset-per-tile"}) {
    INFO(fault);
    const json run = json_of(shape + "--fault " + fault);
    CHECK(run["result"]["verdict"] == "broken on purpose");
    CHECK(run["result"]["first_fault"]["key_tile"].get<int>() >= 1);
    CHECK(run["result"]["hbm"] == right["result"]["hbm"]);
    CHECK(has(run_flashsim(shape + "--fault " + fault).out, std::string(" · FAULT ") + fault + "\n"));
  }
  CHECK(json_of(shape + "--no-causal --fault unmasked-padding")["result"]["verdict"] == "broken on purpose");
  const TemporaryFolder folder;
  folder.file("low.json", R"({"schema": "flashsim.scenario/1",
    "tensors": {"scores": [[-20000, 0], [-20000, -20000]], "v": [[1], [100]]}})");
  const json low =
      json::parse(run_shell("flashsim run low.json --fault finite-mask --format json", folder.path()).out);
  CHECK(low["result"]["verdict"] == "broken on purpose");
  CHECK(low["result"]["output"][0][0][0][0] == 100.0);
}

TEST_CASE("a wrong result that nobody asked for has status 1, one that can't be told is done") {
  const std::string shape = "run --seq 32 --heads 1 --head-dim 16 --algo standard --dtype fp16 ";
  const Ran wrong = run_flashsim(shape + "--magnitude 3000");
  CHECK(wrong.status == 1);
  CHECK(has(wrong.out, "\nO is WRONG on "));
  CHECK(has(wrong.out, " of 32 rows, L on 32 of 32\n"));
  CHECK(has(wrong.out, "\n  why           standard stores S in fp16, which scores of up to "));
  const Ran undecided = run_flashsim("run --seq 32 --heads 1 --head-dim 16 --scale 1e30");
  CHECK(undecided.status == 0);
  CHECK(has(undecided.out,
            "\nundecided: rounding alone may make O as wrong as zeros would be, with scores of up to "));
}

TEST_CASE("a large run is checked on some rows, and says which") {
  const json run = json_of("run --seq 8192 --heads 2 --head-dim 64");
  CHECK(run["result"]["verdict"] == "right");
  CHECK(run["result"]["rows"]["sampled"] == true);
  CHECK(run["result"]["rows"]["total"] == 16384);
  const auto checked = run["result"]["rows"]["checked"].get<std::int64_t>();
  CHECK(checked > 100);
  CHECK(checked < 16384);
  const std::string note = run["result"]["rows"]["note"].get<std::string>();
  CHECK_FALSE(note.empty());
  CHECK(has(run_flashsim("run --seq 8192 --heads 2 --head-dim 64").out, "\nO and L: " + note + "\n"));
}

TEST_CASE("--save writes the result as .npy files, in a folder that it makes") {
  const TemporaryFolder folder;
  const Ran ran = run_shell("flashsim " + kSmall + "--backward --save out --format json", folder.path());
  REQUIRE(ran.status == 0);
  const json run = json::parse(ran.out);
  CHECK(run["result"]["saved"] ==
        json({"out/o.npy", "out/lse.npy", "out/dq.npy", "out/dk.npy", "out/dv.npy"}));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "out")) files += entry.exists() ? 1 : 0;
  CHECK(files == 5);
  const auto o = flashsim::read_npy<float>(folder / "out/o.npy");
  REQUIRE(o);
  CHECK(o->batch() == 2);
  CHECK(o->heads() == 4);
  CHECK(o->matrix(1, 2)(39, 7) == run["result"]["output"][1][2][39][7].get<float>());
  const auto lse = flashsim::read_npy<float>(folder / "out/lse.npy", NpyRow::number);
  REQUIRE(lse);
  CHECK(lse->matrix(1, 2)(39, 0) == run["result"]["lse"][1][2][39].get<float>());
  const auto dk = flashsim::read_npy<float>(folder / "out/dk.npy");
  REQUIRE(dk);
  CHECK(dk->heads() == 2);
  CHECK(dk->matrix(1, 1)(55, 7) == run["result"]["gradients"]["dk"][1][1][55][7].get<float>());
  CHECK(has(run_shell("flashsim " + kSmall + "--save out", folder.path()).out,
            "\nsaved: out/o.npy, out/lse.npy\n"));
}

TEST_CASE("table, Markdown, CSV and JSON of a run tell the same") {
  const TemporaryFolder folder;
  REQUIRE(run_shell("flashsim " + kSmall + "--format json --out r.json", folder.path()).status == 0);
  const json result = json::parse(read_whole(folder / "r.json"))["result"];
  const auto printed = [&](const std::string& format) {
    return run_shell("flashsim run --input r.json --format " + format, folder.path()).out;
  };
  const std::string csv = printed("csv");
  CHECK(csv.starts_with("section,item,quantity,value\ninput,,algorithm,flash2\n"));
  CHECK(has(csv, "\nresult,,verdict,right\n"));
  CHECK(has(csv, "\nerror,O,max_abs," + result["error"]["max_abs"].dump() + "\n"));
  CHECK(has(csv, "\nhbm,total,total_bytes," + result["hbm"]["total_bytes"].dump() + "\n"));
  CHECK(has(csv, "\ncheck,predicted_equals_counted,,true\n"));
  CHECK(has(csv, "\nrows,,checked,320\n"));
  const std::string markdown = printed("markdown");
  CHECK(markdown.starts_with("## FlashAttention-2 forward\n"));
  CHECK(has(markdown, "\nright: all 320 rows are within rounding of the truth\n"));
  // Rows of the error table are the same but for how they are set.
  std::istringstream lines(printed("table"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  O  ")) continue;
    std::istringstream words(line);
    std::string set = "\n|";
    std::string word;
    for (int n = 0; n < 6 && words >> word; ++n) set += " " + word + " |";
    CHECK(has(markdown, set));
    break;
  }
}

TEST_CASE("the faults are listed") {
  const json faults = json_of("list faults")["result"]["faults"];
  CHECK(faults.size() == 6);
  CHECK(faults[0]["name"] == "rescale-l-only");
  CHECK(has(run_flashsim("list").out, "Faults (run --fault)"));
}

TEST_CASE("an interrupt ends a run at once, with no file and a clean line") {
  const TemporaryFolder folder;
  if (run_shell("command -v script && command -v timeout", folder.path()).status != 0) return;
  const Ran ran = run_shell(
      "TERM=xterm script -qec 'timeout -s INT 4 flashsim run --seq 200000 --heads 1 --head-dim 16 --save out "
      "--out r.json' "
      "typescript",
      folder.path());
  const std::string shown = read_whole(folder / "typescript");
  CHECK(has(shown, "forward "));
  CHECK(has(shown, "FLOP/s "));
  CHECK(has(shown, " left"));
  // The last that was written takes the line away.
  const std::string clear = "\r\x1b[K";
  const auto last = shown.rfind(clear);
  REQUIRE(last != std::string::npos);
  CHECK(shown.find("forward", last) == std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"typescript"});
}
