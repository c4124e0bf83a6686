#include "app/views/run_view.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/views/account_view.hpp"
#include "app/views/traffic_view.hpp"
#include "core/attention/attend.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// A tensor that was held against the truth.
struct Checked {
  const char* name;
  const char* meaning;
  const Comparison* comparison;
};

std::vector<Checked> checked_tensors(const RunReport& r) {
  std::vector<Checked> tensors{{"O", "", &r.verification.output}, {"L", "  logsumexp", &r.verification.lse}};
  if (!r.gradient_verification) return tensors;
  const GradientVerification& g = *r.gradient_verification;
  tensors.push_back({"dQ", "", &g.dq});
  // Where no truth of the keys could be had, nothing was checked.
  if (!g.keys.rows.empty()) {
    tensors.push_back({"dK", "", &g.dk});
    tensors.push_back({"dV", "", &g.dv});
  }
  return tensors;
}

std::string type_text(const RunPlan& plan) {
  if (plan.problem.storage == plan.compute) return std::string(name_of(plan.compute));
  return fmt::format("{} stored, {} computed", name_of(plan.problem.storage), name_of(plan.compute));
}

/// What is broken, in capitals: "" where nothing is.
std::string switches_text(const RunPlan& plan) {
  const Switches& switches = plan.switches;
  std::string text;
  if (!switches.subtract_max) text += " · maximum NOT subtracted";
  if (!switches.rescale) text += " · NOT rescaled";
  if (switches.fault != Fault::none) text += fmt::format(" · FAULT {}", name_of(switches.fault));
  if (switches.accumulate_in_storage)
    text += fmt::format(" · sums ROUNDED to {}", name_of(plan.problem.storage));
  return text;
}

/// "04_flash_tensor, 06_flash_backward, deterministic"
std::string kernels_text(const RunPlan& plan) {
  std::string text(facts_of(*plan.kernel).name);
  if (plan.backward_kernel) text += fmt::format(", {}", facts_of(*plan.backward_kernel).name);
  return plan.deterministic ? text + ", deterministic" : text;
}

Title title(const RunReport& r) {
  const RunPlan& plan = r.plan;
  const std::string where =
      r.device ? fmt::format("{} on {}", kernels_text(plan), r.device->name)
               : fmt::format("{} thread{}, {}", plan.threads, plan.threads == 1 ? "" : "s", vector_target());
  return {fmt::format("{} forward{}", facts_of(plan.algorithm).title, plan.backward ? " and backward" : ""),
          fmt::format("{} · {} · {} · tiles {}{} · {}{}", shape_text(plan.problem), type_text(plan),
                      mask_text(plan.problem), tiling_text(plan.tiling), method_text(plan.method()), where,
                      switches_text(plan))};
}

std::string drawn_text(const RandomTensors& random) {
  return fmt::format("seed {}, |x| < {:g}", random.seed, std::fabs(random.magnitude));
}

FactsBlock inputs_facts(const RunPlan& plan) {
  const TensorSource& tensors = plan.tensors;
  FactsBlock block{.heading = "Inputs"};
  if (tensors.scenario) {
    const Scenario& scenario = *tensors.scenario;
    block.facts.push_back({tensors.scores_given() ? "S, V" : "Q, K, V", "scenario",
                           scenario.title + (scenario.random ? ": " + drawn_text(tensors.random) : "")});
  } else if (tensors.files) {
    block.facts.push_back(
        {"Q, K, V", "files",
         fmt::format("'{}', '{}', '{}'", tensors.files->q, tensors.files->k, tensors.files->v)});
  } else {
    block.facts.push_back({"Q, K, V", "drawn", drawn_text(tensors.random)});
  }
  if (!plan.backward) return block;
  if (tensors.d_o) {
    block.facts.push_back({"dO", "file", fmt::format("'{}'", *tensors.d_o)});
  } else {
    block.facts.push_back({"dO", "drawn", tensors.qkv_drawn() ? "after them" : drawn_text(tensors.random)});
  }
  return block;
}

std::string error_text(double error) {
  return std::isfinite(error) ? three_digits(error) : std::isnan(error) ? "NaN" : "∞";
}

/// "head 3, row 17"; the batch entry is named where there are several, and so is the head.
std::string row_text(const Problem& p, std::int64_t batch, std::int64_t head, std::int64_t row) {
  std::string text;
  if (p.batch > 1) text += fmt::format("batch {}, ", batch);
  if (p.heads > 1) text += fmt::format("head {}, ", head);
  return text + fmt::format("row {}", row);
}

std::string place_text(const Problem& p, const char* tensor, const Place& at) {
  std::string text = row_text(p, at.batch, at.head, at.row);
  if (std::string_view(tensor) != "L") text += fmt::format(", column {}", at.column);
  return text;
}

TableBlock error_table(const RunReport& r) {
  TableBlock table{.heading = "Against float64 truth",
                   .columns = {"largest error", "relative", "ulp", "tolerance", "wrong rows", "largest at"},
                   .left = {6}};
  for (const auto& [name, meaning, comparison] : checked_tensors(r)) {
    const Comparison& c = *comparison;
    table.rows.push_back({std::string(name) + meaning, error_text(c.max_abs.size), error_text(c.max_rel.size),
                          error_text(c.max_ulp.size), error_text(c.tolerance),
                          c.wrong_rows == 0 ? "–" : grouped(c.wrong_rows),
                          c.max_abs.size == 0 ? "" : place_text(r.plan.problem, name, c.max_abs.element.at)});
  }
  return table;
}

/// "all 4 096 rows", "512 of 262 144 rows"
std::string rows_text(const RowSample& sample) {
  if (sample.whole()) {
    return sample.of == 1 ? std::string("the one row") : fmt::format("all {} rows", grouped(sample.of));
  }
  return fmt::format("{} of {} rows", grouped(static_cast<std::int64_t>(sample.rows.size())),
                     grouped(sample.of));
}

/// "O is WRONG on 3 of 8 rows, L on 3 of 8"
std::string wrong_text(const RunReport& r) {
  std::string text;
  for (const auto& [name, meaning, c] : checked_tensors(r)) {
    if (c->agrees()) continue;
    const std::string wrong = grouped(c->wrong_rows);
    const std::string all = grouped(c->rows);
    text += text.empty() ? fmt::format("{} is WRONG on {} of {} rows", name, wrong, all)
                         : fmt::format(", {} on {} of {}", name, wrong, all);
  }
  return text;
}

/// The tensors whose tolerance is as large as they are.
std::string undecided_tensors(const RunReport& r) {
  std::vector<std::string> names;
  if (r.verification.says_nothing()) names.emplace_back("O");
  if (r.gradient_verification) {
    const Tolerance& t = r.gradient_verification->tolerance;
    if (t.dq_says_nothing()) names.emplace_back("dQ");
    if (t.dk_says_nothing()) names.emplace_back("dK");
    if (t.dv_says_nothing()) names.emplace_back("dV");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

VerdictLine verdict_line(const RunReport& r) {
  switch (r.verdict) {
    case Verdict::right: {
      std::string text =
          fmt::format("right: {} {} within rounding of the truth", rows_text(r.verification.sample),
                      r.verification.sample.of == 1 ? "is" : "are");
      if (!r.why.empty()) text += fmt::format("; nothing broke: {}", r.why);
      return {Tone::good, text};
    }
    case Verdict::broken: return {Tone::bad, fmt::format("broken on purpose: {}", wrong_text(r))};
    case Verdict::wrong: return {Tone::bad, wrong_text(r)};
    case Verdict::undecided:
      return {Tone::bad,
              fmt::format("undecided: rounding alone may make {} as wrong as zeros would be, with scores of "
                          "up to {} in {}",
                          undecided_tensors(r), three_digits(r.verification.tolerance.magnitudes.score),
                          type_text(r.plan))};
  }
  return {};
}

/// What the first fault was held against.
const char* truth_text(const RunReport& r) {
  if (!r.first_fault->key_tile) return "the truth";
  return r.plan.method().splits > 1 ? "the truth over the keys of its part seen so far"
                                    : "the truth over the keys seen so far";
}

/// Where it first went wrong: row, tile and value, and why.
FactsBlock fault_facts(const RunReport& r) {
  FactsBlock block;
  if (r.first_fault) {
    const FirstFault& f = *r.first_fault;
    const std::string row = row_text(r.plan.problem, f.place.batch, f.place.head, f.place.row);
    block.facts.push_back(
        {"first wrong", "",
         f.key_tile ? fmt::format("{}, in query tile {} after key tile {}", row, f.query_tile, *f.key_tile)
                    : fmt::format("{}, in query tile {}", row, f.query_tile)});
    block.facts.push_back({"value", "",
                           fmt::format("{} is {}, and {} is {}, give or take {}",
                                       f.column ? fmt::format("O[{}]", *f.column) : "L", value_text(f.got),
                                       truth_text(r), value_text(f.expected), error_text(f.tolerance))});
  }
  if (r.first_fault && r.device) {
    block.facts.push_back({"found", "",
                           r.first_fault->key_tile
                               ? "by the CPU, which executed the row's tile once more with the same switches"
                               : "in the device's result: executed once more by the CPU, the row is right "
                                 "after every key tile, or its algorithm has no running state"});
  }
  if (!r.why.empty()) block.facts.push_back({"why", "", r.why});
  return block;
}

void add_sample_notes(const RunReport& r, Document& document) {
  LinesBlock notes;
  const auto add = [&](const char* what, const RowSample& sample) {
    if (sample.whole()) return;
    notes.lines.push_back(fmt::format("{}: {}", what, sample.note));
  };
  add("O and L", r.verification.sample);
  if (r.gradient_verification) {
    add("dQ", r.gradient_verification->queries);
    add("dK and dV", r.gradient_verification->keys);
  }
  if (!notes.lines.empty()) document.emplace_back(std::move(notes));
}

std::string rate_text(FlopsPerSecond rate) {
  const auto whole = static_cast<std::int64_t>(std::llround(rate.value));
  return flops_text(Flops(whole)) + "/s";
}

FactsBlock speed_facts(const RunReport& r) {
  FactsBlock block{.heading = "Execution"};
  const auto add = [&](const char* name, const PassReport& pass) {
    block.facts.push_back(
        {name, seconds_text(pass.seconds),
         fmt::format("{}: {}, {}", rate_text(pass.rate()), flops_text(pass.flops), pass.flops_formula)});
  };
  add(r.device && !r.backward ? "on the device" : "forward", r.forward);
  if (r.backward) add("backward", *r.backward);
  return block;
}

void add_traffic(const RunReport& r, Document& document) {
  const auto steps = [](const PassReport& pass) { return grouped(pass.tally().steps.value()) + " steps"; };
  const Problem& p = r.plan.problem;
  if (!r.forward.counted) {
    document.emplace_back(traffic_table(
        r.backward ? "HBM traffic forward, predicted" : "HBM traffic, predicted", r.forward.predicted, p));
    if (r.backward) {
      document.emplace_back(traffic_table("HBM traffic backward, predicted", r.backward->predicted, p));
    }
    document.emplace_back(
        VerdictLine{Tone::neutral,
                    "predicted, not counted: a device tells no steps; flashsim measure reads its counters"});
    return;
  }
  document.emplace_back(
      traffic_table(r.backward ? "HBM traffic forward" : "HBM traffic", *r.forward.counted, p));
  document.emplace_back(check_line(r.discrepancies, steps(r.forward)));
  if (!r.backward) return;
  document.emplace_back(traffic_table("HBM traffic backward", *r.backward->counted, p));
  document.emplace_back(check_line(r.backward_discrepancies, steps(*r.backward)));
}

FactsBlock tolerance_facts(const std::string& heading, const Tolerance& tolerance) {
  FactsBlock block{.heading = heading};
  for (const NamedFormula& named : formulas_of(tolerance)) {
    block.facts.push_back(
        {named.name, error_text(named.formula.value()),
         fmt::format("{}: {} = {}", named.meaning, named.formula.symbols(), named.formula.numbers())});
  }
  return block;
}

}  // namespace

Document run_document(const RunReport& report, bool explain) {
  const RunReport& r = report;
  Document document;
  document.emplace_back(title(r));
  document.emplace_back(inputs_facts(r.plan));
  document.emplace_back(error_table(r));
  add_sample_notes(r, document);
  document.emplace_back(verdict_line(r));
  if (r.verdict == Verdict::broken || r.verdict == Verdict::wrong) {
    FactsBlock facts = fault_facts(r);
    if (!facts.facts.empty()) document.emplace_back(std::move(facts));
  }
  document.emplace_back(speed_facts(r));
  add_traffic(r, document);
  if (explain) {
    document.emplace_back(tolerance_facts("Tolerance", r.verification.tolerance));
    if (r.gradient_verification) {
      document.emplace_back(
          tolerance_facts("Tolerance of the gradients", r.gradient_verification->tolerance));
    }
    document.emplace_back(LinesBlock{
        {"ε and u: unit roundoffs of the compute and the storage type, λ and η: their least numbers;",
         "A: the largest score, V: the largest value, Tc: the key tiles; docs/numerics.md has them all."}});
  } else {
    document.emplace_back(
        LinesBlock{{"The tolerance is what rounding alone may do at worst; --explain derives it."}});
  }
  if (!r.saved.empty()) {
    document.emplace_back(LinesBlock{{fmt::format("saved: {}", fmt::join(r.saved, ", "))}});
  }
  return document;
}

CsvTable run_csv(const RunReport& report) {
  const RunReport& r = report;
  CsvTable table{.header = {"section", "item", "quantity", "value"}};
  const auto add = [&](const std::string& section, const std::string& item, const std::string& quantity,
                       const std::string& value) {
    table.rows.push_back({section, item, quantity, value});
  };
  const auto whole = [](std::int64_t value) { return fmt::format("{}", value); };
  const nlohmann::ordered_json input = run_input_json(r.plan);
  for (const auto& [key, value] : input.items()) {
    const auto& shown = key == "scenario" && value.is_object() ? value["title"] : value;
    add("input", "", key, shown.is_string() ? shown.get<std::string>() : shown.is_null() ? "" : shown.dump());
  }
  add("result", "", "verdict", std::string(name_of(r.verdict)));
  add("result", "", "why", r.why);
  for (const auto& [name, meaning, c] : checked_tensors(r)) {
    add("error", name, "max_abs", exact_text(c->max_abs.size));
    add("error", name, "max_rel", exact_text(c->max_rel.size));
    add("error", name, "max_ulp", exact_text(c->max_ulp.size));
    add("error", name, "tolerance", exact_text(c->tolerance));
    add("error", name, "rows", whole(c->rows));
    add("error", name, "wrong_rows", whole(c->wrong_rows));
  }
  const RowSample& sample = r.verification.sample;
  add("rows", "", "checked", whole(static_cast<std::int64_t>(sample.rows.size())));
  add("rows", "", "wrong", whole(r.verification.wrong_rows()));
  add("rows", "", "total", whole(sample.of));
  if (r.first_fault) {
    const FirstFault& f = *r.first_fault;
    add("first_fault", "", "batch", whole(f.place.batch));
    add("first_fault", "", "head", whole(f.place.head));
    add("first_fault", "", "row", whole(f.place.row));
    add("first_fault", "", "query_tile", whole(f.query_tile));
    add("first_fault", "", "key_tile", f.key_tile ? whole(*f.key_tile) : "");
    add("first_fault", "", "column", f.column ? whole(*f.column) : "");
    add("first_fault", "", "got", exact_text(f.got));
    add("first_fault", "", "expected", exact_text(f.expected));
  }
  const auto add_pass = [&](const char* name, const char* traffic, const PassReport& pass) {
    constexpr double kGiga = 1e9;
    add("execution", name, "seconds", exact_text(pass.seconds.value));
    add("execution", name, "gflops", exact_text(pass.rate().value / kGiga));
    add("execution", name, "flops", whole(pass.flops.value()));
    add("execution", name, "steps", whole(pass.tally().steps.value()));
    add_traffic_rows(table, traffic, pass.tally(), r.plan.problem);
  };
  add_pass("forward", "hbm", r.forward);
  if (r.backward) add_pass("backward", "hbm_backward", *r.backward);
  add("execution", "", "threads", whole(r.plan.threads));
  add("execution", "", "vector_target", vector_target());
  add("execution", "", "device", r.device ? r.device->name : "");
  const auto equal = r.predicted_equals_counted();
  add("check", "predicted_equals_counted", "", equal ? (*equal ? "true" : "false") : "");
  for (const std::string& path : r.saved) add("saved", path, "", "");
  return table;
}

}  // namespace flashsim
