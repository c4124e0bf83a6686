#include "app/views/list_view.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/nearest.hpp"
#include "core/base/quantity_text.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/library.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/model.hpp"
#include "core/problem/switches.hpp"
#include "core/study/scenario.hpp"
#include "cuda/backend.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "flashsim.list/1";
const std::vector<std::string> kSections{"algorithms", "machines", "models",  "scenarios",
                                         "switches",   "faults",   "kernels", "devices"};

std::string rate_text(std::optional<double> rate) { return rate ? three_digits(*rate / 1e12) : "–"; }

std::vector<std::string> names_of(std::span<const NumberType> types) {
  std::vector<std::string> names;
  for (const NumberType type : types) names.emplace_back(name_of(type));
  return names;
}

/// The sections as JSON; every other form is made from it.
ordered_json section_json(const std::string& section) {
  ordered_json list = ordered_json::array();
  if (section == "algorithms") {
    for (const AlgorithmFacts& a : kAlgorithms) {
      list.push_back({{"name", a.name}, {"title", a.title}, {"summary", a.summary}});
    }
  } else if (section == "machines") {
    for (const Machine& m : built_in_machines()) {
      const auto rate = [](std::optional<double> r) { return r ? ordered_json(*r) : ordered_json(nullptr); };
      list.push_back({{"name", m.name},
                      {"aliases", m.aliases},
                      {"title", m.title},
                      {"memory_bytes", m.memory.value()},
                      {"memory_bytes_per_second", m.memory_bandwidth.value},
                      {"l2_bytes", m.l2.value()},
                      {"sms", m.sms},
                      {"shared_memory_per_block_bytes", m.shared_memory_per_block.value()},
                      {"registers_per_sm_bytes", m.registers_per_sm.value()},
                      {"fp32_flops_per_second", rate(m.flops_per_second.fp32)},
                      {"fp16_flops_per_second", rate(m.flops_per_second.fp16)},
                      {"rates", m.rates},
                      {"uncertain", m.uncertain},
                      {"notes", m.notes},
                      {"source", m.source}});
    }
  } else if (section == "models") {
    for (const Model& m : built_in_models()) {
      list.push_back({{"name", m.name},
                      {"title", m.title},
                      {"heads", m.heads},
                      {"kv_heads", m.kv_heads},
                      {"head_dim", m.head_dim},
                      {"layers", m.layers},
                      {"source", m.source}});
    }
  } else if (section == "scenarios") {
    for (const std::string& name : built_in_names("scenarios")) {
      const auto scenario = find_scenario(name);
      list.push_back({{"name", name},
                      {"title", scenario->title},
                      {"shape", shape_text(scenario->problem)},
                      {"tiles", tiling_text(scenario->tiling)}});
    }
  } else if (section == "switches") {
    list.push_back(
        {{"name", "--no-subtract-max"},
         {"title", "p = exp(s)"},
         {"summary", "no running maximum: exponentials overflow once a score passes 88.7 in fp32"}});
    list.push_back({{"name", "--no-rescale"},
                    {"title", "r = 1"},
                    {"summary", "old tiles keep their old reference: wrong wherever the maximum rises"}});
    list.push_back({{"name", "--accumulate storage"},
                    {"title", "sums in the storage type"},
                    {"summary", "run alone: l and O are rounded to the storage type at every addition"}});
  } else if (section == "faults") {
    for (const FaultFacts& fault : kFaults) {
      list.push_back({{"name", fault.name},
                      {"summary", fault.summary},
                      {"why", fault.why},
                      {"tiled_only", fault.scope != FaultScope::every},
                      {"online_only", fault.scope == FaultScope::online}});
    }
  } else if (section == "kernels") {
    for (const KernelFacts& k : kKernels) {
      list.push_back({{"name", k.name},
                      {"summary", k.summary},
                      {"algorithm", facts_of(k.algorithm).name},
                      {"pass", name_of(k.pass)},
                      {"dtypes", names_of(k.storage)},
                      {"largest_head_dim", k.largest_head_dim},
                      {"counts_itself", k.counts_itself}});
    }
  } else if (section == "devices") {
    for (const CudaDevice& d : cuda_devices().devices) {
      list.push_back({{"name", d.name},
                      {"compute_capability", d.compute_capability},
                      {"memory_bytes", d.memory.value()},
                      {"l2_bytes", d.l2.value()},
                      {"sms", d.sms},
                      {"shared_memory_per_sm_bytes", d.shared_memory_per_sm.value()},
                      {"shared_memory_per_block_bytes", d.shared_memory_per_block.value()},
                      {"registers_per_sm_bytes", d.registers_per_sm.value()},
                      {"blocks_per_sm", d.blocks_per_sm},
                      {"clock_hz", d.clock_hz}});
    }
  }
  return list;
}

std::vector<std::string> wanted(const std::string& section) {
  if (!section.empty()) return {section};
  return {kSections.begin(), kSections.end() - 1};
}

Block algorithms_block() {
  TableBlock table{.heading = "Algorithms (--algo)", .columns = {"", ""}, .left = {1, 2}};
  for (const AlgorithmFacts& a : kAlgorithms) {
    table.rows.push_back({std::string(a.name), std::string(a.title), std::string(a.summary)});
  }
  table.rows.push_back({"flash", "", "the same as flash2"});
  return table;
}

Block machines_block() {
  TableBlock table{
      .heading = "Machines (--gpu)",
      .columns = {"memory", "GB/s", "SMs", "shared/block", "L2", "fp32", "fp16 TFLOP/s", "uncertain"},
      .left = {8}};
  for (const Machine& m : built_in_machines()) {
    std::vector<std::string> names{m.name};
    names.insert(names.end(), m.aliases.begin(), m.aliases.end());
    table.rows.push_back({fmt::format("{}", fmt::join(names, ", ")), size_text(m.memory),
                          fmt::format("{:.0f}", m.memory_bandwidth.value / 1e9), fmt::format("{}", m.sms),
                          size_text(m.shared_memory_per_block), size_text(m.l2),
                          rate_text(m.flops_per_second.fp32), rate_text(m.flops_per_second.fp16),
                          fmt::format("{}", fmt::join(m.uncertain, ", "))});
  }
  return table;
}

Block models_block() {
  TableBlock table{
      .heading = "Models (--model)", .columns = {"", "heads", "kv heads", "head dim", "layers"}, .left = {1}};
  for (const Model& m : built_in_models()) {
    table.rows.push_back({m.name, m.title, fmt::format("{}", m.heads), fmt::format("{}", m.kv_heads),
                          fmt::format("{}", m.head_dim), fmt::format("{}", m.layers)});
  }
  return table;
}

Block scenarios_block() {
  TableBlock table{
      .heading = "Scenarios (flashsim replay NAME)", .columns = {"", "", "tiles"}, .left = {1, 2}};
  for (const auto& s : section_json("scenarios"))
    table.rows.push_back({s["name"], s["title"], s["shape"], s["tiles"]});
  return table;
}

Block switches_block() {
  TableBlock table{
      .heading = "Switches (flashsim run, flashsim replay)", .columns = {"", ""}, .left = {1, 2}};
  for (const auto& s : section_json("switches")) table.rows.push_back({s["name"], s["title"], s["summary"]});
  return table;
}

Block faults_block() {
  constexpr std::array<std::string_view, 3> kScopes{"every algorithm", "tiled algorithms", "online softmax"};
  TableBlock table{.heading = "Faults (run --fault)", .columns = {"", "of"}, .left = {1, 2}};
  for (const FaultFacts& fault : kFaults) {
    table.rows.push_back({std::string(fault.name), std::string(fault.summary),
                          std::string(kScopes[static_cast<std::size_t>(fault.scope)])});
  }
  return table;
}

Block kernels_block() {
  TableBlock table{.heading = "Kernels (measure, run --device cuda: --kernel)",
                   .columns = {"algorithm", "pass", "types", "head dim", ""},
                   .left = {1, 2, 3, 5}};
  for (const KernelFacts& k : kKernels) {
    table.rows.push_back({std::string(k.name), std::string(facts_of(k.algorithm).name),
                          std::string(name_of(k.pass)),
                          fmt::format("{}", fmt::join(names_of(k.storage), ", ")),
                          fmt::format("to {}", k.largest_head_dim), std::string(k.summary)});
  }
  return table;
}

Block devices_block() {
  const CudaDevices found = cuda_devices();
  if (found.devices.empty()) return LinesBlock{{fmt::format("No CUDA device: {}.", found.missing)}};
  TableBlock table{.heading = "CUDA devices here",
                   .columns = {"capability", "memory", "SMs", "shared/block", "L2", "blocks/SM"}};
  for (const CudaDevice& d : found.devices) {
    table.rows.push_back({d.name, d.compute_capability, size_text(d.memory), fmt::format("{}", d.sms),
                          size_text(d.shared_memory_per_block), size_text(d.l2),
                          fmt::format("{}", d.blocks_per_sm)});
  }
  return table;
}

Block section_block(const std::string& section) {
  if (section == "algorithms") return algorithms_block();
  if (section == "machines") return machines_block();
  if (section == "models") return models_block();
  if (section == "scenarios") return scenarios_block();
  if (section == "switches") return switches_block();
  if (section == "faults") return faults_block();
  if (section == "kernels") return kernels_block();
  return devices_block();
}

}  // namespace

Outcome check_section(const std::string& section) {
  if (section.empty() || std::find(kSections.begin(), kSections.end(), section) != kSections.end())
    return std::nullopt;
  return unknown_name("section", section, kSections);
}

Document list_document(const std::string& section) {
  Document document;
  for (const std::string& name : wanted(section)) document.push_back(section_block(name));
  return document;
}

ordered_json list_json(const std::string& section) {
  ordered_json result;
  for (const std::string& name : wanted(section)) result[name] = section_json(name);
  return {{"schema", kSchema},
          {"input", {{"section", section.empty() ? ordered_json(nullptr) : ordered_json(section)}}},
          {"result", std::move(result)}};
}

CsvTable list_csv(const std::string& section) {
  CsvTable table{.header = {"section", "name", "quantity", "value"}};
  for (const std::string& part : wanted(section)) {
    for (const auto& entry : section_json(part)) {
      for (const auto& [key, value] : entry.items()) {
        if (key == "name") continue;
        table.rows.push_back(
            {part, entry["name"], key, value.is_string() ? value.get<std::string>() : value.dump()});
      }
    }
  }
  return table;
}

}  // namespace flashsim
