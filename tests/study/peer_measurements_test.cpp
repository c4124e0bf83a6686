// The ladder's kernels beside PyTorch's, in one run, on an H200.
#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/study/measured_rows.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

constexpr const char* kShapeKeys[] = {"type", "batch", "heads", "kv_heads", "seq", "head_dim", "causal"};

/// "8192", or "1/65536" where there are more keys.
std::string seq_of(const json& row) {
  const int seq = row.at("seq").get<int>();
  const int kv_seq = row.value("kv_seq", seq);
  return seq == kv_seq ? fmt::format("{}", seq) : fmt::format("{}/{}", seq, kv_seq);
}

/// One line for each kernel of ours and shape: its time, and the time of each peer over it.
std::string peers_table(const std::string& file) {
  const std::vector<std::pair<const char*, const char*>> peers{{"torch eager", "eager"},
                                                               {"torch math", "math"},
                                                               {"torch memory-efficient", "memory-efficient"},
                                                               {"torch flash", "flash"},
                                                               {"torch cudnn", "cuDNN"}};
  std::string text = "| kernel | B, H/Hkv, N/Nkv, d | time | TFLOP/s |";
  for (const auto& [who, title] : peers) text += fmt::format(" {} |", title);
  text += "\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n";
  const json rows = measured(file).at("rows");
  const auto same = [](const json& a, const json& b) {
    return std::all_of(std::begin(kShapeKeys), std::end(kShapeKeys),
                       [&](const char* key) { return a.at(key) == b.at(key); });
  };
  for (const json& ours : rows) {
    if (ours.at("who").get<std::string>().rfind("torch", 0) == 0) continue;
    text += fmt::format("| {}, {} | {}, {}, {}, {}{} | {} | {} |", ours.at("who").get<std::string>(),
                        ours.at("type").get<std::string>(), ours.at("batch").get<int>(),
                        ours.at("heads") == ours.at("kv_heads")
                            ? ours.at("heads").dump()
                            : fmt::format("{}/{}", ours.at("heads").dump(), ours.at("kv_heads").dump()),
                        seq_of(ours), ours.at("head_dim").get<int>(),
                        ours.at("causal").get<bool>() ? ", causal" : "",
                        seconds_text({ours.at("median_seconds").get<double>()}),
                        three_digits(ours.at("tflops").get<double>()));
    for (const auto& [who, title] : peers) {
      const auto peer = std::find_if(rows.begin(), rows.end(), [&](const json& each) {
        return each.at("who") == who && same(each, ours) && each.contains("median_seconds") &&
               each.at("median_seconds").is_number();
      });
      text += peer == rows.end()
                  ? " – |"
                  : fmt::format(" {} |", three_digits(peer->at("median_seconds").get<double>() /
                                                      ours.at("median_seconds").get<double>()));
    }
    text += "\n";
  }
  return text;
}

TEST_CASE("the ladder's rungs are as fast beside PyTorch as they should be") {
  const json rows = measured("h200_peers.json").at("rows");
  int compared = 0;
  for (const json& peer : rows) {
    if (!peer.contains("median_seconds") || !peer.at("median_seconds").is_number()) continue;
    const bool efficient = peer.at("who") == "torch memory-efficient" && peer.at("type") == "fp32";
    const bool eager = peer.at("who") == "torch eager" && peer.at("type") == "fp16";
    if (!efficient && !eager) continue;
    const json& ratios = peer.at("ours_over_it");
    ++compared;
    INFO(peer.dump());
    if (efficient) CHECK(ratios.at("03_flash_fp32").get<double>() >= 0.35);
    if (eager) CHECK(ratios.at("02_standard_cublas").get<double>() >= 1.0);
  }
  CHECK(compared >= 8);
}

/// Every row of PyTorch's in a file, with the ratio of its time to ours.
template <class Check>
void over_ratios(const char* file, const char* who, const char* kernel, int at_least, const Check& check) {
  const json rows = measured(file).at("rows");
  int compared = 0;
  for (const json& peer : rows) {
    if (peer.at("who") != who || !peer.contains("ours_over_it") || !peer.at("ours_over_it").contains(kernel))
      continue;
    ++compared;
    INFO(peer.dump());
    check(peer, peer.at("ours_over_it").at(kernel).get<double>());
  }
  CHECK(compared >= at_least);
}

TEST_CASE("03 is at least a third as fast as memory-efficient float32, and 02 as fast as eager fp16") {
  over_ratios("h200_peers.json", "torch memory-efficient", "03_flash_fp32", 4,
              [](const json&, double ratio) { CHECK(ratio >= 0.35); });
  over_ratios("h200_peers.json", "torch eager", "02_standard_cublas", 4,
              [](const json&, double ratio) { CHECK(ratio >= 1.0); });
}

TEST_CASE("04 is at least as fast as PyTorch's flash kernel, on every shape from N 2048 to 16384") {
  over_ratios("h200_peers_04.json", "torch flash", "04_flash_tensor", 16,
              [](const json&, double ratio) { CHECK(ratio >= 1.0); });
}

TEST_CASE("05 takes at most a ninth more than cuDNN for one query over many keys") {
  over_ratios("h200_peers_05.json", "torch cudnn", "05_flash_split_kv", 2,
              [](const json& peer, double ratio) {
                if (peer.at("seq") == 1 && peer.at("head_dim") == 128) CHECK(ratio >= 0.9);
              });
}

TEST_CASE("06 has at least 0.7 of the speed of PyTorch's flash backward") {
  over_ratios("h200_peers_06.json", "torch flash", "06_flash_backward", 1,
              [](const json& peer, double ratio) {
                if (peer.at("seq") == 8192 && peer.at("causal") == true) CHECK(ratio >= 0.7);
              });
}

TEST_CASE("the tables of the peers are made of the measurements") {
  check_table("peers", peers_table("h200_peers.json"));
  check_table("peers of 04", peers_table("h200_peers_04.json"));
  check_table("peers of 05", peers_table("h200_peers_05.json"));
  check_table("peers of 06", peers_table("h200_peers_06.json"));
}

}  // namespace
}  // namespace flashsim
