#include "app/views/softmax_view.hpp"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "app/views/traffic_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// "3: 2 loads, 1 store"
std::string accesses_text(const SoftmaxAccount& account) {
  const auto several = [](std::int64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const std::string stores = account.stores == 0 ? "no store" : several(account.stores, "store");
  return fmt::format("{}: {}, {}", account.loads + account.stores, several(account.loads, "load"), stores);
}

std::string rows_text(const SoftmaxReport& r) {
  const SoftmaxProblem& p = r.problem;
  const std::string row = fmt::format("a row is {}, and a block of the {} has {}", size_text(p.row_bytes()),
                                      r.machine.title, size_text(r.shared_memory));
  if (!r.chip.fits()) {
    return row + fmt::format(": it doesn't fit, and comes in pieces of {} columns again for every pass",
                             grouped(r.chip.columns));
  }
  return row + fmt::format(": {} at once, so x is loaded once and stays on the chip for every pass",
                           r.chip.rows == 1 ? "one row fits" : grouped(r.chip.rows) + " rows fit");
}

FactsBlock numerics_facts(const SoftmaxReport& r) {
  const NaiveLimits& naive = r.naive;
  const std::string_view type = name_of(naive.accumulation);
  return {.heading = "What naive does without the maximum",
          .facts = {{"x above", three_digits(naive.largest),
                     fmt::format("exp(x) is infinite in {}, and y NaN", type)},
                    {"rows of equal x above", value_text(std::round(10 * naive.largest_even) / 10),
                     fmt::format("their sum over {} columns is", grouped(r.problem.columns))},
                    {"rows of x below", value_text(std::round(10 * naive.smallest) / 10),
                     "every exp(x) is 0, and y is 0/0"}}};
}

VerdictLine softmax_check_line(const SoftmaxReport& r) {
  Count steps;
  bool counted = true;
  for (const SoftmaxAccount& account : r.ways) {
    if (!account.discrepancies.empty()) {
      VerdictLine line = check_line(account.discrepancies, "");
      line.text = fmt::format("{}: {}", facts_of(account.way).title, line.text);
      return line;
    }
    steps += account.prediction.tally.steps;
    counted = counted && account.counted.has_value();
  }
  const std::string of_ways = fmt::format("{} steps a row, of all ways", grouped(steps.value()));
  if (counted) return check_line({}, of_ways);
  return {Tone::neutral,
          fmt::format("predicted, not all counted: the walks have {}; --count counts them", of_ways)};
}

}  // namespace

Document softmax_document(const SoftmaxReport& report) {
  const SoftmaxReport& r = report;
  const SoftmaxProblem& p = r.problem;
  Document document;
  std::string about = fmt::format("{} × {} · {}", p.rows, p.columns, name_of(p.storage));
  if (p.top_k) about += fmt::format(" · top {}", *p.top_k);
  document.emplace_back(Title{"Softmax alone", fmt::format("{} · {}", about, r.machine.title)});
  TableBlock table{
      .heading = "HBM traffic",
      .columns = {"accesses an element", "read", "written", "total", "exponentials", "passes", "kernels"},
      .left = {1}};
  TableBlock passes{.heading = "The passes", .columns = {""}, .left = {1}};
  BarsBlock bars;
  for (const SoftmaxAccount& account : r.ways) {
    const SoftmaxWayFacts& facts = facts_of(account.way);
    const SoftmaxTally& tally = account.prediction.tally;
    const Flow total = tally.total();
    table.rows.push_back({std::string(facts.title), accesses_text(account), size_text(total.read),
                          size_text(total.written), size_text(total.total()),
                          decimal_text(tally.exponentials.value()), grouped(tally.passes.value()),
                          grouped(tally.kernels.value())});
    passes.rows.push_back({std::string(facts.title), std::string(facts.summary)});
    bars.bars.push_back(
        {std::string(facts.title), size_text(total.total()), static_cast<double>(total.total().value()), ""});
  }
  document.emplace_back(std::move(table));
  document.emplace_back(std::move(bars));
  document.emplace_back(LinesBlock{{rows_text(r)}});
  document.emplace_back(softmax_check_line(r));
  document.emplace_back(std::move(passes));
  document.emplace_back(numerics_facts(r));
  return document;
}

CsvTable softmax_csv(const SoftmaxReport& report) {
  const SoftmaxReport& r = report;
  CsvTable table{.header = {"way",
                            "rows",
                            "columns",
                            "dtype",
                            "top_k",
                            "sram_bytes",
                            "gpu",
                            "row_fits",
                            "kernels",
                            "passes",
                            "loads_per_element",
                            "stores_per_element",
                            "accesses_per_element",
                            "hbm_read_bytes",
                            "hbm_write_bytes",
                            "hbm_total_bytes",
                            "result_write_bytes",
                            "exponentials",
                            "steps_per_row",
                            "predicted_equals_counted"}};
  for (const SoftmaxAccount& account : r.ways) {
    const SoftmaxTally& tally = account.prediction.tally;
    const Flow total = tally.total();
    std::vector<std::string> row;
    const auto add = [&](const auto& value) { row.push_back(fmt::format("{}", value)); };
    add(facts_of(account.way).name);
    add(r.problem.rows);
    add(r.problem.columns);
    add(name_of(r.problem.storage));
    add(r.problem.top_k ? fmt::format("{}", *r.problem.top_k) : "");
    add(r.shared_memory.value());
    add(r.gpu);
    add(r.chip.fits());
    add(tally.kernels.value());
    add(tally.passes.value());
    add(account.loads);
    add(account.stores);
    add(account.loads + account.stores);
    add(total.read.value());
    add(total.written.value());
    add(total.total().value());
    add(tally.results.written.value());
    add(tally.exponentials.value());
    add(tally.steps.value());
    add(!account.counted ? "" : account.discrepancies.empty() ? "true" : "false");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace flashsim
