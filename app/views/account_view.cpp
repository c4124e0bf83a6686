#include "app/views/account_view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/machine_view.hpp"
#include "app/views/traffic_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

bool is_chunked(const AccountReport& r) { return r.method.algorithm == Algorithm::memory_efficient; }

std::string percent(double share) { return three_digits(100 * share) + " %"; }

FactsBlock memory_facts(const AccountReport& r) {
  const Problem& p = r.problem;
  FactsBlock block{.heading = "Memory"};
  block.facts.push_back(
      {"peak intermediate", size_text(r.peak_intermediate()), alive_text(r.prediction.intermediate)});
  block.facts.push_back(
      {"peak allocated", size_text(r.tally().peak_allocated), alive_text(r.prediction.allocated)});
  block.facts.push_back({"with inputs", size_text(r.memory_needed()),
                         fmt::format("{} the {} of the {}", r.fits_memory() ? "fits" : "does NOT fit",
                                     size_text(r.machine.memory), r.machine.title)});
  if (facts_of(r.method.algorithm).stores_scores) {
    block.facts.push_back(
        {"one head's matrix", size_text(score_matrix_bytes(p)),
         fmt::format("{} × {} = {} entries", p.seq, p.kv_seq, grouped(score_matrix_entries(p).value()))});
  }
  return block;
}

/// What binds, by the roofline: executed FLOPs over HBM bytes against the machine's balance.
std::string balance_text(const AccountReport& r) {
  const auto machine = r.balance();
  const double executed = (r.tally().work.products / r.hbm_bytes()).value;
  const std::string kinds = fmt::format("exact, {} executed; ", three_digits(executed));
  if (!machine) {
    return kinds + fmt::format("no {} rate of the {} is known", name_of(r.problem.storage), r.machine.title);
  }
  return kinds +
         fmt::format("the {} balances at {} in {}, so {}", r.machine.title, three_digits(machine->value),
                     name_of(r.problem.storage),
                     executed < machine->value ? "HBM binds where nothing is cached" : "arithmetic binds");
}

FactsBlock arithmetic_facts(const AccountReport& r) {
  const Work& work = r.tally().work;
  FactsBlock block{.heading = "Arithmetic"};
  const Flops exact(r.flops.exact.value());
  const Flops paper(r.flops.paper.value());
  block.facts.push_back({"matrix products", flops_text(work.products),
                         fmt::format("executed; {} for visible pairs alone, {} as papers count",
                                     flops_text(exact), flops_text(paper))});
  const Flops softmax = work.softmax + work.scale + work.mask + work.normalise;
  block.facts.push_back({"around them", flops_text(softmax), "scale, mask, maximum, sum, normalisation"});
  if (work.rescale != Flops()) {
    block.facts.push_back(
        {"rescaling", flops_text(work.rescale),
         fmt::format("{} of the matrix products: the price of {}",
                     percent(ratio(work.rescale, work.products)),
                     facts_of(r.method.algorithm).online ? "the online softmax" : "combining the parts")});
  }
  block.facts.push_back({"exponentials", decimal_text(work.exponentials.value()), "on units of their own"});
  block.facts.push_back({"intensity", three_digits(r.intensity().value) + " FLOP/B", balance_text(r)});
  return block;
}

std::string tiles_text(const std::vector<OnChipTile>& tiles) {
  std::vector<std::string> parts;
  for (const OnChipTile& tile : tiles) parts.push_back(fmt::format("{} {}", tile.name, size_text(tile.size)));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string launch_text(const AccountReport& r, const Occupancy& kernel) {
  const std::string launches =
      kernel.launches == Count(1) ? "" : fmt::format("in {} launches, ", grouped(kernel.launches.value()));
  return fmt::format("{}{} per SM, {} waves, {} of {} SMs at work", launches, kernel.blocks_per_sm,
                     three_digits(kernel.waves), percent(kernel.sm_share), r.machine.sms);
}

FactsBlock block_facts(const AccountReport& r) {
  const Occupancy& kernel = r.main_kernel();
  const Footprint& footprint = kernel.footprint;
  const std::string of_kernel = r.kernels.size() == 1 ? "" : fmt::format(" of the {} kernel", kernel.kernel);
  const bool too_large = footprint.shared_total() > r.shared_memory;
  return {
      .heading = "On the chip, a thread block" + of_kernel,
      .facts = {{"shared memory", size_text(footprint.shared_total()),
                 fmt::format("of {}: {}{}", size_text(r.shared_memory), tiles_text(footprint.shared_memory),
                             too_large ? "; more than there is: such a block can't launch" : "")},
                {"registers", size_text(footprint.register_total()),
                 fmt::format("of {} an SM: {}{}", size_text(r.machine.registers_per_sm),
                             tiles_text(footprint.registers),
                             kernel.registers_overflow ? "; more than there are: the rest spills" : "")}}};
}

/// How split-kv's parts were chosen, and what a pattern keeps: empty for the others.
FactsBlock method_facts(const AccountReport& r) {
  FactsBlock block{.heading = "The method"};
  if (r.splits) {
    const SplitChoice& s = *r.splits;
    std::string how = "asked for";
    if (s.automatic && s.filled()) {
      how = fmt::format("{} blocks fill the {} SMs to 80 % as they are", grouped(s.blocks.value()), s.sms);
    } else if (s.automatic) {
      how = fmt::format("{} × {} blocks on {} SMs: {} at work over all waves, at best {}", s.splits,
                        grouped(s.blocks.value()), s.sms, percent(s.efficiency()), percent(s.best));
    }
    block.facts.push_back({"parts", grouped(s.splits),
                           fmt::format("of {} key tile{}; {}", grouped(s.tiles_a_split()),
                                       s.tiles_a_split() == 1 ? "" : "s", how)});
    block.facts.push_back({"packed rows", grouped(r.problem.seq * (r.problem.heads / r.problem.kv_heads)),
                           fmt::format("{} query heads read each key/value head at once",
                                       r.problem.heads / r.problem.kv_heads)});
  }
  if (r.prediction.pattern) {
    const KeptBlocks& kept = *r.prediction.pattern;
    block.facts.push_back(
        {"blocks kept", percent(kept.fraction()),
         fmt::format("{} of {} a head, by {}", grouped(kept.kept.value()), grouped(kept.blocks.value()),
                     pattern_text(r.method.pattern->request()))});
    block.facts.push_back({"visited", grouped(r.prediction.tile_pairs.visited.value()),
                           fmt::format("of {} that {} visits without it", grouped(kept.dense.value()),
                                       facts_of(Algorithm::flash2).title)});
  }
  return block;
}

FactsBlock launch_facts(const AccountReport& r) {
  const Flow sm = r.tally().sm_total();
  const Flow sram = r.tally().sram_total();
  FactsBlock block{.heading = "The launch"};
  for (const Occupancy& kernel : r.kernels) {
    const std::string label = r.kernels.size() == 1 ? "blocks" : fmt::format("blocks, {}", kernel.kernel);
    block.facts.push_back({label, grouped(kernel.blocks.value()), launch_text(r, kernel)});
  }
  block.facts.push_back({"SM traffic", size_text(sm.total()),
                         sm.total() == r.hbm_bytes()
                             ? "equals HBM traffic: every tile load is counted there"
                             : "with the operand tiles that the products read again"});
  block.facts.push_back({"SRAM traffic", size_text(sram.total()),
                         fmt::format("{} read, {} written on the chip, tile by tile", size_text(sram.read),
                                     size_text(sram.written))});
  return block;
}

BarsBlock standard_bars(const AccountReport& r) {
  const Bytes own = r.hbm_bytes();
  const Bytes standard = r.standard->hbm;
  const bool less = own <= standard;
  const std::string times = three_digits(less ? ratio(standard, own) : ratio(own, standard));
  return {.bars = {{"Standard moves", size_text(standard), static_cast<double>(standard.value()), ""},
                   {fmt::format("{} moves", facts_of(r.method.algorithm).title), size_text(own),
                    static_cast<double>(own.value()),
                    own == standard ? "the same" : fmt::format("{} × {}", times, less ? "less" : "more")}}};
}

/// What standard's 16 GiB are: the score matrix, crossing four times; backward its gradients too.
FactsBlock score_matrix_facts(const AccountReport& r) {
  Bytes matrix;
  std::vector<std::string> of_matrix;
  Bytes rest;
  std::vector<std::string> of_rest;
  for (const TensorLine& line : tensor_lines(r.tally(), r.problem)) {
    const bool scores = shape_of(line.operand) == OperandShape::scores;
    (scores ? matrix : rest) += line.flow.total();
    (scores ? of_matrix : of_rest).push_back(line.name);
  }
  const std::string last = of_matrix.back();
  of_matrix.pop_back();
  return {.facts = {
              {"score matrix", size_text(matrix), fmt::format("{} and {}", fmt::join(of_matrix, ", "), last)},
              {fmt::format("{}", fmt::join(of_rest, ", ")), size_text(rest), ""}}};
}

/// What is kept for the gradients against what standard attention would keep, and what it costs to have kept
/// less.
FactsBlock saved_facts(const AccountReport& r) {
  FactsBlock block{.heading = "Kept for backward"};
  const std::string title(facts_of(r.method.algorithm).title);
  block.facts.push_back(
      {title, size_text(total_size(r.saved_for_backward)), alive_text(r.saved_for_backward)});
  if (r.method.algorithm != Algorithm::standard && r.standard) {
    block.facts.push_back({"Standard attention", size_text(r.standard->saved_for_backward), "P"});
  }
  const Flops again = r.prediction.recomputed;
  if (again != Flops()) {
    block.facts.push_back(
        {"computed again", flops_text(again),
         fmt::format("{} of the matrix products: {}", percent(ratio(again, r.tally().work.products)),
                     r.method.deterministic ? "S twice, and dP" : "S")});
  }
  return block;
}

/// Of eager: what isn't as it is where nothing is asked for.
std::string passes_text(const AccountReport& r) {
  if (r.method.algorithm != Algorithm::eager) return r.method.deterministic ? " · deterministic" : "";
  const EagerPassList passes = listed(r.problem, r.method);
  if (passes == EagerPassList{.scale = true, .mask = r.problem.causal}) return "";
  return fmt::format(" · passes {}", fmt::join(names_of(passes), ", "));
}

std::vector<std::string> legend(const AccountReport& r) {
  const Problem& p = r.problem;
  std::vector<std::string> lines{
      fmt::format("e = {} and a = {}: bytes of an element in storage ({}) and in accumulation ({})",
                  size_of(p.storage), size_of(p.accumulation()), name_of(p.storage),
                  name_of(p.accumulation())),
      fmt::format("Tr = ⌈N/Br⌉ and Tc = ⌈Nkv/Bc⌉: query and key {}; Br = {}, Bc = {}",
                  is_chunked(r) ? "chunks" : "tiles", r.method.tiling.query_rows, r.method.tiling.key_rows),
      "Σ: over the visited tile pairs of one head, with rows and keys the valid ones of a tile",
      "Σmasked: over those that hold a masked pair; where no pair is skipped, over all that do",
      "A figure with several lines is their sum"};
  if (is_chunked(r)) {
    lines.insert(lines.begin() + 2, fmt::format("Rt and Kt: tiles of {} rows and of {} keys in all chunks",
                                                kProductTiles.query_rows, kProductTiles.key_rows));
  }
  return lines;
}

void add_explanations(const AccountReport& r, Document& document) {
  document.emplace_back(explanations_table(explanations_of(r)));
  document.emplace_back(LinesBlock{legend(r)});
}

}  // namespace

TableBlock explanations_table(const std::vector<ExplainedFigure>& figures) {
  TableBlock table{
      .heading = "Figure", .columns = {"value", "formula, and the numbers put into it"}, .left = {2}};
  for (const ExplainedFigure& e : figures) {
    const auto* whole = std::get_if<std::int64_t>(&e.value);
    table.rows.push_back({e.figure,
                          whole != nullptr ? grouped(*whole) : three_digits(std::get<double>(e.value)),
                          fmt::format("{} = {}", e.symbols, e.numbers)});
  }
  return table;
}

std::string alive_text(const std::vector<Alive>& alive) {
  std::vector<std::string> parts;
  for (const Alive& tensor : alive) {
    parts.push_back(fmt::format("{} {}{}", name_of(tensor.operand), size_text(tensor.size),
                                tensor.note.empty() ? "" : " (" + tensor.note + ")"));
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string mask_text(const Problem& problem) {
  std::string text = problem.causal ? "causal" : "not causal";
  if (problem.causal && problem.seq != problem.kv_seq)
    text += fmt::format(" ({})", name_of(problem.alignment));
  return text;
}

std::string pass_text(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::backward: return "backward";
    case Pass::both: return "forward and backward";
  }
  return {};
}

std::string method_text(const Method& method) {
  if (method.algorithm == Algorithm::split_kv) {
    return fmt::format(" · {} part{}", method.splits, method.splits == 1 ? "" : "s");
  }
  return method.pattern == nullptr ? "" : fmt::format(" · {}", pattern_text(method.pattern->request()));
}

std::string problem_text(const Problem& problem) {
  return fmt::format("{} · {} · {}", shape_text(problem), name_of(problem.storage), mask_text(problem));
}

VerdictLine check_line(const AccountReport& r) {
  const std::string steps = grouped(r.tally().steps.value());
  if (!r.counted) {
    return {Tone::neutral,
            fmt::format("predicted, not counted: the walk has {} steps a head; --count counts them", steps)};
  }
  return check_line(r.discrepancies, fmt::format("{} steps a head", steps));
}

Document account_document(const AccountReport& report, bool explain) {
  const AccountReport& r = report;
  Document document;
  document.emplace_back(
      Title{fmt::format("{} {}", facts_of(r.method.algorithm).title, pass_text(r.method.pass)),
            fmt::format("{}{} · {} {}{} · {}", problem_text(r.problem), passes_text(r),
                        is_chunked(r) ? "chunks" : "tiles", tiling_text(r.method.tiling),
                        method_text(r.method), r.machine.title)});
  document.emplace_back(traffic_table("HBM traffic", r.tally(), r.problem));
  if (facts_of(r.method.algorithm).stores_scores) document.emplace_back(score_matrix_facts(r));
  document.emplace_back(check_line(r));
  if (FactsBlock method = method_facts(r); !method.facts.empty()) document.emplace_back(std::move(method));
  document.emplace_back(memory_facts(r));
  if (r.method.pass != Pass::forward) document.emplace_back(saved_facts(r));
  document.emplace_back(arithmetic_facts(r));
  document.emplace_back(block_facts(r));
  document.emplace_back(launch_facts(r));
  add_machine(r, document);
  if (r.standard && r.method.algorithm != Algorithm::standard) document.emplace_back(standard_bars(r));
  if (r.method.algorithm == Algorithm::block_sparse) {
    document.emplace_back(
        LinesBlock{{"Block-sparse attention computes another function: what the pattern leaves "
                    "out is masked. Standard computes all of it."}});
  }
  if (explain) add_explanations(r, document);
  return document;
}

CsvTable account_csv(const AccountReport& report, bool explain) {
  const AccountReport& r = report;
  CsvTable table{.header = {"section", "item", "quantity", "value"}};
  const auto add = [&](const std::string& section, const std::string& item, const std::string& quantity,
                       const auto& value) {
    table.rows.push_back({section, item, quantity, fmt::format("{}", value)});
  };
  const auto add_flow = [&](const std::string& section, const std::string& item, Flow flow) {
    add_flow_rows(table, section, item, flow);
  };
  const Problem& p = r.problem;
  const Tally& tally = r.tally();
  add("input", "", "algorithm", facts_of(r.method.algorithm).name);
  add("input", "", "pass", name_of(r.method.pass));
  for (const auto& [name, value] : {std::pair{"batch", p.batch},
                                    {"heads", p.heads},
                                    {"kv_heads", p.kv_heads},
                                    {"seq", p.seq},
                                    {"kv_seq", p.kv_seq},
                                    {"head_dim", p.head_dim}}) {
    add("input", "", name, value);
  }
  add("input", "", "dtype", name_of(p.storage));
  add("input", "", "causal", p.causal);
  add("input", "", "causal_alignment", name_of(p.alignment));
  if (r.method.algorithm == Algorithm::eager) {
    add("input", "", "passes", fmt::format("{}", fmt::join(names_of(listed(p, r.method)), " ")));
  }
  add("input", "", "deterministic", r.method.deterministic);
  add("input", "", "tile_q", r.method.tiling.query_rows);
  add("input", "", "tile_k", r.method.tiling.key_rows);
  add("input", "", "sram_bytes", r.shared_memory.value());
  add("input", "", "gpu", r.gpu);
  if (r.simulation) {
    add("input", "", "launch_order", name_of(r.habits.launch_order));
    add("input", "", "key_order", name_of(r.habits.key_order));
    add("input", "", "overlap", name_of(r.habits.overlap));
    if (r.habits.blocks_per_sm) add("input", "", "blocks_per_sm", *r.habits.blocks_per_sm);
  }
  if (r.splits) {
    add("input", "", "splits", r.splits->automatic ? "auto" : fmt::format("{}", r.splits->splits));
    add("splits", "", "count", r.splits->splits);
    add("splits", "", "key_tiles_each", r.splits->tiles_a_split());
    add("splits", "", "wave_efficiency", r.splits->efficiency());
    add("splits", "", "best_wave_efficiency", r.splits->best);
  }
  if (r.prediction.pattern) {
    add("input", "", "pattern", pattern_text(r.method.pattern->request()));
    add("pattern", "", "kept_blocks", r.prediction.pattern->kept.value());
    add("pattern", "", "blocks", r.prediction.pattern->blocks.value());
    add("pattern", "", "kept_fraction", r.prediction.pattern->fraction());
    add("pattern", "", "visited_blocks", r.prediction.tile_pairs.visited.value());
    add("pattern", "", "dense_visited_blocks", r.prediction.pattern->dense.value());
  }
  add_traffic_rows(table, "hbm", tally, p);
  add_flow("sm", "total", tally.sm_total());
  for (const Operation operation : kOperations) {
    const Flow flow = tally.sram_of(operation);
    if (flow.total() != Bytes()) add_flow("sram", std::string(name_of(operation)), flow);
  }
  add_flow("sram", "total", tally.sram_total());
  add("memory", "peak_intermediate", "bytes", r.peak_intermediate().value());
  add("memory", "peak_allocated", "bytes", tally.peak_allocated.value());
  add("memory", "inputs", "bytes", input_bytes(p, r.method).value());
  add("memory", "needed", "bytes", r.memory_needed().value());
  add("memory", "machine", "bytes", r.machine.memory.value());
  add("memory", "fits", "", r.fits_memory());
  if (r.method.pass != Pass::forward) {
    add("memory", "saved_for_backward", "bytes", total_size(r.saved_for_backward).value());
    add("flops", "recomputed", "flops", r.prediction.recomputed.value());
  }
  const Work& work = tally.work;
  add("flops", "paper", "flops", r.flops.paper.value().value());
  add("flops", "exact", "flops", r.flops.exact.value().value());
  add("flops", "executed", "flops", work.products.value());
  add("flops", "scale", "flops", work.scale.value());
  add("flops", "mask", "flops", work.mask.value());
  add("flops", "softmax", "flops", work.softmax.value());
  add("flops", "rescale", "flops", work.rescale.value());
  add("flops", "normalise", "flops", work.normalise.value());
  add("flops", "exponentials", "count", work.exponentials.value());
  add("flops", "intensity", "flops_per_hbm_byte", r.intensity().value);
  add("on_chip", "shared_memory", "bytes", r.main_kernel().footprint.shared_total().value());
  add("on_chip", "registers", "bytes", r.main_kernel().footprint.register_total().value());
  for (const Occupancy& kernel : r.kernels) {
    add("launch", kernel.kernel, "blocks", kernel.blocks.value());
    add("launch", kernel.kernel, "launches", kernel.launches.value());
    add("launch", kernel.kernel, "blocks_per_sm", kernel.blocks_per_sm);
    add("launch", kernel.kernel, "waves", kernel.waves);
    add("launch", kernel.kernel, "sm_share", kernel.sm_share);
  }
  add_machine_rows(r, table);
  if (r.standard) {
    add("standard", "hbm", "total_bytes", r.standard->hbm.value());
    add("standard", "peak_intermediate", "bytes", r.standard->peak_intermediate.value());
    add("standard", "hbm", "traffic_ratio", ratio(r.standard->hbm, r.hbm_bytes()));
  }
  add("check", "steps_per_head", "count", tally.steps.value());
  const auto equal = r.predicted_equals_counted();
  add("check", "predicted_equals_counted", "", equal ? (*equal ? "true" : "false") : "");
  if (explain) {
    for (const ExplainedFigure& e : explanations_of(r)) add("formula", e.figure, e.symbols, e.numbers);
  }
  return table;
}

}  // namespace flashsim
