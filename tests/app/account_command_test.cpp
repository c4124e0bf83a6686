// The account as a user sees it: the same figures on the terminal, in JSON, CSV and Markdown.
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::Ran;
using flashsim::test::run_flashsim;
using nlohmann::json;

constexpr std::int64_t kMiB = 1 << 20;

json json_of(const std::string& arguments) {
  const Ran ran = run_flashsim(arguments + " --format json");
  INFO(arguments << "\n" << ran.err);
  REQUIRE(ran.status == 0);
  return json::parse(ran.out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has_line(const std::string& text, const std::string& wanted) {
  for (const std::string& line : lines_of(text)) {
    if (line == wanted) return true;
  }
  return false;
}

bool has(const std::string& text, const std::string& wanted) {
  return text.find(wanted) != std::string::npos;
}

json tensor(const json& account, const std::string& name) {
  for (const json& one : account["result"]["hbm"]["tensors"]) {
    if (one["tensor"] == name) return one;
  }
  return {};
}

}  // namespace

TEST_CASE("standard attention at 8192 moves 16.25 GiB, of which S and P are 16") {
  const json account = json_of("--seq 8192 --algo standard");
  const json& result = account["result"];
  CHECK(result["hbm"]["total_bytes"] == 16640 * kMiB);
  const auto moved = [&](const char* name) {
    return tensor(account, name)["read_bytes"].get<std::int64_t>() +
           tensor(account, name)["write_bytes"].get<std::int64_t>();
  };
  CHECK(moved("S") + moved("P") == 16384 * kMiB);
  CHECK(moved("Q") + moved("K") + moved("V") + moved("O") == 256 * kMiB);
  CHECK(result["peak_intermediate_bytes"] == 4096 * kMiB);
  CHECK(result["peak_allocated_bytes"] == (4096 + 64) * kMiB);
  CHECK(result["score_matrix"]["entries_per_head"] == 67108864);
  CHECK(result["score_matrix"]["bytes_per_head"] == 128 * kMiB);
  // SM traffic: S and P, Q and K again, V again, and O.
  const auto sm =
      result["sm"]["read_bytes"].get<std::int64_t>() + result["sm"]["write_bytes"].get<std::int64_t>();
  CHECK(sm == (16384 + 8192 + 4096 + 64) * kMiB);
  CHECK(result["predicted_equals_counted"] == true);

  const std::string table = run_flashsim("--seq 8192 --algo standard").out;
  CHECK(has(table, "16.3 GiB"));
  CHECK(has(table, "score matrix   16.0 GiB"));
  CHECK(has(table, "Q, K, V, O     256 MiB"));
  CHECK(has(table, "peak intermediate   4.00 GiB"));
  CHECK(has(table, "8192 × 8192 = 67 108 864 entries"));
  CHECK(has(table, "128 MiB"));

  const std::string csv = run_flashsim("--seq 8192 --algo standard --format csv").out;
  CHECK(has_line(csv, "hbm,total,total_bytes,17448304640"));
  CHECK(has_line(csv, "memory,peak_intermediate,bytes,4294967296"));
}

TEST_CASE("flash at 8192 moves 4289 MiB with a peak of 65 MiB") {
  const json account = json_of("--seq 8192 --algo flash");
  const json& result = account["result"];
  CHECK(account["schema"] == "flashsim.account/1");
  CHECK(account["input"]["algorithm"] == "flash2");
  CHECK(account["input"]["gpu"] == "a100");
  CHECK(result["hbm"]["total_bytes"] == 4289 * kMiB);
  CHECK(tensor(account, "Q")["read_bytes"] == 64 * kMiB);
  CHECK(tensor(account, "K")["read_bytes"] == 2080 * kMiB);
  CHECK(tensor(account, "V")["read_bytes"] == 2080 * kMiB);
  CHECK(tensor(account, "K")["crossings"] == 32.5);
  CHECK(tensor(account, "O")["write_bytes"] == 64 * kMiB);
  CHECK(tensor(account, "L")["write_bytes"] == kMiB);
  CHECK(result["peak_intermediate_bytes"] == 65 * kMiB);
  CHECK(result["launch"]["blocks"] == 2048);
  CHECK(result["predicted_equals_counted"] == true);
  CHECK(result["discrepancies"].empty());

  const std::string table = run_flashsim("--seq 8192 --algo flash").out;
  CHECK(
      lines_of(table).front() ==
      "FlashAttention-2 forward   B 1 · H 32 · N 8192 · d 128 · fp16 · causal · tiles 128×128 · A100 80 GB");
  CHECK(has_line(table, "  K              2.03 GiB          –   2.03 GiB        32.5"));
  CHECK(has_line(table, "  total          4.13 GiB   65.0 MiB   4.19 GiB"));
  CHECK(has(table, "predicted = counted, to the byte"));
  CHECK(has(table, "3.88 × less"));

  const std::string csv = run_flashsim("--seq 8192 --algo flash --format csv").out;
  CHECK(has_line(csv, "hbm,total,total_bytes,4497342464"));
  CHECK(has_line(csv, "hbm,K,read_bytes,2181038080"));
  CHECK(has_line(csv, "memory,peak_intermediate,bytes,68157440"));
  CHECK(has_line(csv, "check,predicted_equals_counted,,true"));

  const std::string markdown = run_flashsim("--seq 8192 --algo flash --format markdown").out;
  CHECK(has_line(markdown, "| K | 2.03 GiB | – | 2.03 GiB | 32.5 |"));
}

TEST_CASE("the bare command is the worked example") {
  CHECK(run_flashsim("").out == run_flashsim("--seq 8192 --algo flash").out);
}

TEST_CASE("the traffic ratio is 2.85 at 512 and 3.88 at 8192, and peaks at 32768 are 64 GiB and 260 MiB") {
  CHECK(has(run_flashsim("--seq 512").out, "2.85 × less"));
  const auto ratio = json_of("--seq 8192")["result"]["standard"]["traffic_ratio"].get<double>();
  CHECK(ratio > 3.875);
  CHECK(ratio < 3.885);
  CHECK(json_of("--seq 32768 --algo standard")["result"]["peak_intermediate_bytes"] == 65536 * kMiB);
  CHECK(json_of("--seq 32768 --algo flash")["result"]["peak_intermediate_bytes"] == 260 * kMiB);
}

TEST_CASE("published tile footprints: 128×64 is refused where 128×32 fits") {
  const std::string shape = "--gpu rtx-4090 --dtype bf16 --head-dim 256 --tile-q 128 ";
  CHECK(run_flashsim(shape + "--tile-k 64").status == 2);
  CHECK(json_of(shape + "--tile-k 32")["result"]["on_chip"]["shared_memory_bytes"] == 98304);
  const json paper = json_of("--algo flash1 --dtype fp32 --head-dim 64 --sram 48KiB");
  CHECK(paper["input"]["tile_q"] == 48);
  CHECK(paper["input"]["tile_k"] == 48);
}

TEST_CASE("the textbook example byte for byte, through the command line") {
  const std::string shape = "--seq 1024 --heads 1 --head-dim 64 --dtype fp32 --tile-q 64 --tile-k 64 ";
  const auto total = [&](const std::string& more) {
    return json_of(shape + more)["result"]["hbm"]["total_bytes"].get<std::int64_t>();
  };
  CHECK(total("--algo standard --no-causal") == 17825792);
  CHECK(total("--algo flash --no-causal") == 8912896 + 4096);
  CHECK(total("--algo flash --causal") == 4980736 + 4096);
  CHECK(total("--algo flash --no-causal --seq 1000") == 8704000 + 4000);
}

TEST_CASE("sizes beyond 32 bits are told as they are") {
  const auto matrix = [&](const std::string& shape) {
    const json account = json_of("--algo standard --dtype fp16 --no-causal " + shape);
    return account["result"]["peak_intermediate_bytes"].get<std::int64_t>() / 2;
  };
  CHECK(matrix("--batch 64 --heads 16 --seq 2048 --head-dim 64") == 4294967296);
  CHECK(matrix("--batch 8 --heads 28 --seq 4096 --head-dim 128") == 3758096384);
  const json wide = json_of("--batch 8300 --heads 16 --seq 128 --head-dim 128");
  CHECK(tensor(wide, "Q")["read_bytes"] == 2 * std::int64_t{2175795200});
}

TEST_CASE("an export names the alignment, and the alignment changes the account") {
  const std::string shape = "--seq 3 --kv-seq 128 --heads 1 --tile-q 1 --tile-k 16 ";
  const json right = json_of(shape);
  const json left = json_of(shape + "--causal-alignment top-left");
  CHECK(right["input"]["causal_alignment"] == "bottom-right");
  CHECK(left["input"]["causal_alignment"] == "top-left");
  CHECK(right["result"]["flops"]["exact"] == 4 * 128 * (126 + 127 + 128));
  CHECK(left["result"]["flops"]["exact"] == 4 * 128 * (1 + 2 + 3));
}

TEST_CASE("a long walk is not counted unless it is asked for") {
  CHECK(json_of("--seq 1048576")["result"]["predicted_equals_counted"].is_null());
  CHECK(has(run_flashsim("--seq 1048576").out, "predicted, not counted"));
  CHECK(json_of("--seq 65536 --tile-k 64")["result"]["steps_per_head"].get<std::int64_t>() > 1000000);
  CHECK(json_of("--seq 65536 --tile-k 64 --count")["result"]["predicted_equals_counted"] == true);
}

TEST_CASE("--explain prints formulas whose numbers multiply to the value") {
  const json account = json_of("--explain");
  int found = 0;
  for (const json& e : account["result"]["explanations"]) {
    if (e["figure"] == "hbm.Q.read_bytes") {
      ++found;
      CHECK(e["formula"] == "B·H·N·d·e");
      CHECK(e["numbers"] == "32 · 8192 · 128 · 2");
      CHECK(e["value"] == 32LL * 8192 * 128 * 2);
    }
  }
  CHECK(found == 1);
  CHECK_FALSE(json_of("")["result"].contains("explanations"));
  CHECK(has(run_flashsim("--explain").out, "B·H·N·d·e"));
}

TEST_CASE("--explain tells how many tile pairs are visited: 136 of 256 when 16 by 16 tiles are causal") {
  const json account =
      json_of("--seq 1024 --heads 1 --head-dim 64 --dtype fp32 --tile-q 64 --tile-k 64 --explain");
  const json& first = account["result"]["explanations"].front();
  CHECK(first["figure"] == "tiles.visited_pairs");
  CHECK(first["numbers"] == "136 of 16 · 16");
  CHECK(first["value"] == 136);
}

TEST_CASE("--model fills in heads and head dimension, and explicit options win") {
  const json llama = json_of("--model llama-3.2-1b");
  CHECK(llama["input"]["heads"] == 32);
  CHECK(llama["input"]["kv_heads"] == 8);
  CHECK(llama["input"]["head_dim"] == 64);
  CHECK(json_of("--model gpt2")["input"]["heads"] == 12);
  CHECK(json_of("--model gpt2 --head-dim 32")["input"]["head_dim"] == 32);
  CHECK(json_of("--model llama-3.2-1b --heads 16")["input"]["kv_heads"] == 16);
  CHECK(json_of("--model llama-3.2-1b --kv-heads 4")["input"]["kv_heads"] == 4);
}
