// The golden cases: inputs, and what PyTorch computed of them in float64 (tests/data/README.md).
#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/attention/tensors.hpp"
#include "core/base/file.hpp"
#include "core/base/npy.hpp"
#include "tests/attention/ways.hpp"

namespace flashsim::test {

/// A folder a case.
inline const std::string kGoldenFolder = FLASHSIM_SOURCE_DIR "/tests/data/golden/";

struct GoldenCase {
  std::string name;
  Given given;
  Outputs<double> expected;
  Tensor4<double> d_o;
  Gradients<double> gradients;
};

inline Tensor4<double> golden_tensor(const std::string& path, NpyRow row = NpyRow::vector) {
  auto read = read_npy<double>(path, row);
  if (!read) throw std::runtime_error(read.error().message);
  return std::move(read).value();
}

inline GoldenCase read_golden_case(const std::string& folder, const std::string& name) {
  const auto text = read_file(folder + "case.json");
  if (!text) throw std::runtime_error(text.error().message);
  const nlohmann::json json = nlohmann::json::parse(*text);
  GoldenCase golden{.name = name};
  golden.given.problem = {
      .batch = json.at("batch"),
      .heads = json.at("heads"),
      .kv_heads = json.at("kv_heads"),
      .seq = json.at("seq_q"),
      .kv_seq = json.at("seq_kv"),
      .head_dim = json.at("head_dim"),
      .causal = json.at("causal"),
      .alignment = causal_alignment_named(json.at("causal_alignment").get<std::string>()).value(),
      .scale = json.at("scale").get<double>(),
      .storage = NumberType::fp64};
  golden.given.inputs = {.q = golden_tensor(folder + "q.npy"),
                         .k = golden_tensor(folder + "k.npy"),
                         .v = golden_tensor(folder + "v.npy")};
  golden.expected = {golden_tensor(folder + "o.npy"), golden_tensor(folder + "lse.npy", NpyRow::number)};
  golden.d_o = golden_tensor(folder + "do.npy");
  golden.gradients = {golden_tensor(folder + "dq.npy"), golden_tensor(folder + "dk.npy"),
                      golden_tensor(folder + "dv.npy")};
  return golden;
}

/// All of them, by name.
inline const std::vector<GoldenCase>& golden_cases() {
  static const std::vector<GoldenCase> cases = [] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(kGoldenFolder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    std::vector<GoldenCase> all;
    for (const std::string& name : names) all.push_back(read_golden_case(kGoldenFolder + name + "/", name));
    return all;
  }();
  return cases;
}

}  // namespace flashsim::test
