#include <string>

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/study/method_choice.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

/// The problem, as every report's `input` gives it.
ordered_json problem_input(const AccountReport& r) {
  ordered_json input{{"pass", name_of(r.method.pass)}};
  input.update(problem_json(r.problem));
  return input;
}

/// null but for eager.
ordered_json passes_json(const AccountReport& r) {
  if (r.method.algorithm != Algorithm::eager) return nullptr;
  return names_of(listed(r.problem, r.method));
}

ordered_json sram_json(const Tally& tally) {
  ordered_json operations = ordered_json::array();
  for (const Operation operation : kOperations) {
    const Flow flow = tally.sram_of(operation);
    if (flow.total() == Bytes()) continue;
    ordered_json entry{{"operation", name_of(operation)}};
    entry.update(flow_json(flow));
    operations.push_back(std::move(entry));
  }
  ordered_json sram = flow_json(tally.sram_total());
  sram["operations"] = std::move(operations);
  return sram;
}

ordered_json alive_json(const std::vector<Alive>& alive) {
  ordered_json list = ordered_json::array();
  for (const Alive& tensor : alive) {
    list.push_back(
        {{"tensor", name_of(tensor.operand)}, {"bytes", tensor.size.value()}, {"note", tensor.note}});
  }
  return list;
}

ordered_json flops_json(const AccountReport& r) {
  const Work& work = r.tally().work;
  return {{"paper", r.flops.paper.value().value()},
          {"exact", r.flops.exact.value().value()},
          {"executed", work.products.value()},
          {"scale", work.scale.value()},
          {"mask", work.mask.value()},
          {"softmax", work.softmax.value()},
          {"rescale", work.rescale.value()},
          {"normalise", work.normalise.value()},
          {"exponentials", work.exponentials.value()}};
}

ordered_json tiles_json(const std::vector<OnChipTile>& tiles) {
  ordered_json list = ordered_json::array();
  for (const OnChipTile& tile : tiles) list.push_back({{"tile", tile.name}, {"bytes", tile.size.value()}});
  return list;
}

ordered_json on_chip_json(const AccountReport& r) {
  const Footprint& footprint = r.main_kernel().footprint;
  return {{"shared_memory_bytes", footprint.shared_total().value()},
          {"shared_memory_limit_bytes", r.shared_memory.value()},
          {"shared_memory", tiles_json(footprint.shared_memory)},
          {"register_bytes", footprint.register_total().value()},
          {"register_limit_bytes", r.machine.registers_per_sm.value()},
          {"registers", tiles_json(footprint.registers)}};
}

ordered_json kernel_json(const Occupancy& kernel) {
  return {{"kernel", kernel.kernel},
          {"blocks", kernel.blocks.value()},
          {"launches", kernel.launches.value()},
          {"blocks_per_sm", kernel.blocks_per_sm},
          {"waves", kernel.waves},
          {"sm_share", kernel.sm_share}};
}

ordered_json launch_json(const AccountReport& r) {
  ordered_json launch = kernel_json(r.main_kernel());
  launch["kernels"] = ordered_json::array();
  for (const Occupancy& kernel : r.kernels) launch["kernels"].push_back(kernel_json(kernel));
  return launch;
}

ordered_json kernel_time_json(const SimulatedKernel& kernel, bool timed) {
  ordered_json entry{{"kernel", kernel.name}, {"blocks_per_sm", kernel.blocks_per_sm}};
  entry["hbm_read_bytes"] = kernel.hbm.read.value();
  entry["hbm_write_bytes"] = kernel.hbm.written.value();
  if (timed) {
    entry["seconds"] = kernel.total.value;
    entry["blocks_seconds"] = kernel.blocks.value;
    entry["busy_share"] = kernel.busy_share;
    entry["bound"] = kernel.bound;
  }
  return entry;
}

/// What --machine adds.
void add_simulation(const AccountReport& r, ordered_json& result) {
  if (!r.not_simulated.empty()) result["hbm_after_l2"] = result["time"] = nullptr;
  if (!r.simulation) return;
  const AfterL2& after = r.simulation->after_l2;
  result["hbm_after_l2"] = {{"read_bytes", after.hbm.read.value()},
                            {"write_bytes", after.hbm.written.value()},
                            {"waiting_bytes", after.waiting.value()},
                            {"hit_rate", after.hit_rate()},
                            {"compulsory_read_bytes", after.compulsory_read.value()},
                            {"uncached_read_bytes", after.uncached_read.value()}};
  const auto& time = r.simulation->time;
  if (!time) {
    result["time"] = nullptr;
    return;
  }
  ordered_json resources = ordered_json::array();
  for (const ResourceTime& each : time->resources) {
    resources.push_back({{"resource", each.resource}, {"seconds", each.time.value}});
  }
  ordered_json kernels = ordered_json::array();
  for (const SimulatedKernel& kernel : r.simulation->kernels)
    kernels.push_back(kernel_time_json(kernel, true));
  result["time"] = {{"seconds", time->total.value},
                    {"bound", time->bound},
                    {"flops_per_second", time->rate.value},
                    {"share_of_peak", time->share_of_peak},
                    {"rates", r.machine.rates},
                    {"resources", std::move(resources)},
                    {"kernels", std::move(kernels)}};
}

/// The keys of `input` that --machine needs.
void add_habits(const AccountReport& r, ordered_json& input) {
  if (!r.simulation && r.not_simulated.empty()) return;
  input["machine"] = true;
  input["launch_order"] = name_of(r.habits.launch_order);
  input["key_order"] = name_of(r.habits.key_order);
  input["overlap"] = name_of(r.habits.overlap);
  input["blocks_per_sm"] =
      r.habits.blocks_per_sm ? ordered_json(*r.habits.blocks_per_sm) : ordered_json(nullptr);
}

ordered_json standard_json(const AccountReport& r) {
  if (!r.standard) return nullptr;
  return {{"hbm_total_bytes", r.standard->hbm.value()},
          {"peak_intermediate_bytes", r.standard->peak_intermediate.value()},
          {"traffic_ratio", ratio(r.standard->hbm, r.hbm_bytes())}};
}

/// null where the account is of forward alone.
ordered_json saved_json(const AccountReport& r) {
  if (r.method.pass == Pass::forward) return nullptr;
  return {{"bytes", total_size(r.saved_for_backward).value()},
          {"tensors", alive_json(r.saved_for_backward)},
          {"standard_bytes",
           r.standard ? ordered_json(r.standard->saved_for_backward.value()) : ordered_json(nullptr)},
          {"recomputed_flops", r.prediction.recomputed.value()}};
}

/// How split-kv's parts were chosen.
ordered_json split_choice_json(const AccountReport& r) {
  if (!r.splits) return nullptr;
  return {{"count", r.splits->splits},
          {"key_tiles_each", r.splits->tiles_a_split()},
          {"chosen", r.splits->automatic},
          {"blocks", r.splits->blocks.value()},
          {"wave_efficiency", r.splits->efficiency()},
          {"best_wave_efficiency", r.splits->best},
          {"most", r.splits->most}};
}

/// What the pattern keeps.
ordered_json kept_json(const AccountReport& r) {
  if (!r.prediction.pattern) return nullptr;
  const KeptBlocks& kept = *r.prediction.pattern;
  return {{"kept_blocks", kept.kept.value()},
          {"blocks", kept.blocks.value()},
          {"kept_fraction", kept.fraction()},
          {"visited_blocks", r.prediction.tile_pairs.visited.value()},
          {"dense_visited_blocks", kept.dense.value()}};
}

ordered_json check_json(const AccountReport& r) {
  const auto equal = r.predicted_equals_counted();
  return equal ? ordered_json(*equal) : ordered_json(nullptr);
}

ordered_json result_json(const AccountReport& r, bool explain) {
  const Problem& p = r.problem;
  const Tally& tally = r.tally();
  ordered_json result;
  result["hbm"] = hbm_json(tally, p);
  result["sm"] = flow_json(tally.sm_total());
  result["sram"] = sram_json(tally);
  result["peak_intermediate_bytes"] = r.peak_intermediate().value();
  result["peak_intermediate"] = alive_json(r.prediction.intermediate);
  result["peak_allocated_bytes"] = tally.peak_allocated.value();
  result["peak_allocated"] = alive_json(r.prediction.allocated);
  result["memory"] = {{"input_bytes", input_bytes(p, r.method).value()},
                      {"needed_bytes", r.memory_needed().value()},
                      {"machine_bytes", r.machine.memory.value()},
                      {"fits", r.fits_memory()}};
  result["saved_for_backward"] = saved_json(r);
  result["flops"] = flops_json(r);
  result["flops_per_hbm_byte"] = r.intensity().value;
  result["machine_flops_per_hbm_byte"] =
      r.balance() ? ordered_json(r.balance()->value) : ordered_json(nullptr);
  result["on_chip"] = on_chip_json(r);
  result["launch"] = launch_json(r);
  result["score_matrix"] = {{"entries_per_head", score_matrix_entries(p).value()},
                            {"bytes_per_head", score_matrix_bytes(p).value()}};
  add_simulation(r, result);
  result["standard"] = standard_json(r);
  result["splits"] = split_choice_json(r);
  result["pattern"] = kept_json(r);
  result["steps_per_head"] = tally.steps.value();
  result["predicted_equals_counted"] = check_json(r);
  result["discrepancies"] = discrepancies_json(r.discrepancies);
  if (explain) result["explanations"] = explanations_json(explanations_of(r));
  return result;
}

}  // namespace

ordered_json explanations_json(const std::vector<ExplainedFigure>& figures) {
  ordered_json list = ordered_json::array();
  for (const ExplainedFigure& e : figures) {
    ordered_json entry{{"figure", e.figure}, {"formula", e.symbols}, {"numbers", e.numbers}};
    std::visit([&](auto value) { entry["value"] = value; }, e.value);
    list.push_back(std::move(entry));
  }
  return list;
}

ordered_json account_json(const AccountReport& r, bool explain) {
  ordered_json input{{"algorithm", facts_of(r.method.algorithm).name}};
  input.update(problem_input(r));
  input["passes"] = passes_json(r);
  input["deterministic"] = r.method.deterministic;
  input["tile_q"] = r.method.tiling.query_rows;
  input["tile_k"] = r.method.tiling.key_rows;
  input["sram_bytes"] = r.shared_memory.value();
  input["gpu"] = r.gpu;
  add_habits(r, input);
  input["splits"] = splits_json(r.splits);
  input["pattern"] = pattern_json(r.method);
  return {{"schema", "flashsim.account/1"}, {"input", std::move(input)}, {"result", result_json(r, explain)}};
}

ordered_json compare_json(const CompareReport& report, bool explain) {
  const AccountReport& first = report.accounts.front();
  ordered_json input = problem_input(first);
  // What follows from the problem is left to follow from it.
  const bool usual = report.passes == EagerPassList{.scale = true, .mask = first.problem.causal};
  input["passes"] = usual ? ordered_json(nullptr) : ordered_json(names_of(report.passes));
  input["deterministic"] = report.deterministic;
  input["tile_q"] = report.tiles.query_rows ? ordered_json(*report.tiles.query_rows) : ordered_json(nullptr);
  input["tile_k"] = report.tiles.key_rows ? ordered_json(*report.tiles.key_rows) : ordered_json(nullptr);
  input["sram_bytes"] = first.shared_memory.value();
  input["gpu"] = first.gpu;
  add_habits(first, input);
  input["splits"] = splits_json(report.splits);
  input["pattern"] = pattern_json(report.pattern);
  ordered_json left_out = ordered_json::array();
  for (const Algorithm algorithm : report.left_out) left_out.push_back(facts_of(algorithm).name);
  ordered_json algorithms = ordered_json::array();
  for (const AccountReport& account : report.accounts) {
    ordered_json entry{{"algorithm", facts_of(account.method.algorithm).name},
                       {"tile_q", account.method.tiling.query_rows},
                       {"tile_k", account.method.tiling.key_rows}};
    entry.update(result_json(account, explain));
    algorithms.push_back(std::move(entry));
  }
  return {{"schema", "flashsim.compare/1"},
          {"input", std::move(input)},
          {"result", {{"algorithms", std::move(algorithms)}, {"left_out", std::move(left_out)}}}};
}

}  // namespace flashsim
