#include "app/views/compare_view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/views/account_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// How the count of the walk compares with the prediction.
std::string counted_text(const AccountReport& r) {
  const auto equal = r.predicted_equals_counted();
  return !equal ? "not counted" : *equal ? "= predicted" : "≠ predicted";
}

/// What --machine adds, algorithm by algorithm.
TableBlock machine_table(const CompareReport& report) {
  TableBlock table{.heading = "On the machine",
                   .columns = {"HBM read", "HBM written", "L2 hits", "time", "bound"}};
  for (const AccountReport& r : report.accounts) {
    if (!r.simulation) {
      table.rows.push_back({std::string(facts_of(r.method.algorithm).name), "–", "–", "–", "–", "–"});
      continue;
    }
    const AfterL2& after = r.simulation->after_l2;
    const auto& time = r.simulation->time;
    table.rows.push_back({std::string(facts_of(r.method.algorithm).name), size_text(after.hbm.read),
                          size_text(after.hbm.written), three_digits(100 * after.hit_rate()) + " %",
                          time ? seconds_text(time->total) : "–", time ? time->bound : "–"});
  }
  return table;
}

bool any_simulated(const CompareReport& report) {
  return std::any_of(report.accounts.begin(), report.accounts.end(),
                     [](const AccountReport& r) { return r.simulation.has_value(); });
}

}  // namespace

Document compare_document(const CompareReport& report, bool explain) {
  const AccountReport& first = report.accounts.front();
  const Bytes standard = first.hbm_bytes();
  Document document;
  document.emplace_back(Title{"Attention " + pass_text(first.method.pass),
                              fmt::format("{} · {}", problem_text(first.problem), first.machine.title)});

  TableBlock traffic{.heading = "HBM traffic",
                     .columns = {"tiles", "read", "written", "total", "of standard", "exact FLOP/B"}};
  TableBlock rest{.heading = "Kept and done",
                  .columns = {"peak intermediate", "peak allocated", "executed FLOPs", "exponentials",
                              "blocks", "SMs at work", "counted"}};
  BarsBlock bars;
  for (const AccountReport& r : report.accounts) {
    const std::string name(facts_of(r.method.algorithm).name);
    const Flow total = r.tally().hbm_total();
    traffic.rows.push_back({name, tiling_text(r.method.tiling) + method_text(r.method), size_text(total.read),
                            size_text(total.written), size_text(total.total()),
                            three_digits(100 * ratio(total.total(), standard)) + " %",
                            three_digits(r.intensity().value)});
    rest.rows.push_back({name, size_text(r.peak_intermediate()), size_text(r.tally().peak_allocated),
                         decimal_text(r.tally().work.products.value()),
                         decimal_text(r.tally().work.exponentials.value()),
                         grouped(r.main_kernel().blocks.value()),
                         three_digits(100 * r.main_kernel().sm_share) + " %", counted_text(r)});
    bars.bars.push_back({name, size_text(total.total()), static_cast<double>(total.total().value()), ""});
  }
  document.emplace_back(std::move(traffic));
  document.emplace_back(std::move(bars));
  document.emplace_back(std::move(rest));
  if (any_simulated(report)) document.emplace_back(machine_table(report));
  if (!report.left_out.empty()) {
    std::vector<std::string_view> names;
    for (const Algorithm algorithm : report.left_out) names.push_back(facts_of(algorithm).name);
    document.emplace_back(
        LinesBlock{{fmt::format("Left out, having no backward pass: {}", fmt::join(names, ", "))}});
  }
  for (const AccountReport& r : report.accounts) {
    if (r.discrepancies.empty()) continue;
    VerdictLine line = check_line(r);
    line.text = fmt::format("{}: {}", facts_of(r.method.algorithm).name, line.text);
    document.emplace_back(std::move(line));
  }
  if (explain) {
    for (const AccountReport& r : report.accounts) {
      for (Block& block : account_document(r, true)) document.push_back(std::move(block));
    }
  }
  return document;
}

CsvTable compare_csv(const CompareReport& report) {
  CsvTable table{.header = {"algorithm",
                            "tile_q",
                            "tile_k",
                            "splits",
                            "pattern",
                            "hbm_read_bytes",
                            "hbm_write_bytes",
                            "hbm_total_bytes",
                            "sm_read_bytes",
                            "sm_write_bytes",
                            "sram_read_bytes",
                            "sram_write_bytes",
                            "peak_intermediate_bytes",
                            "peak_allocated_bytes",
                            "flops_paper",
                            "flops_exact",
                            "flops_executed",
                            "flops_rescale",
                            "exponentials",
                            "flops_per_hbm_byte",
                            "blocks",
                            "blocks_per_sm",
                            "waves",
                            "sm_share",
                            "predicted_equals_counted"}};
  const bool simulated = any_simulated(report);
  if (simulated) {
    for (const char* column : {"hbm_after_l2_read_bytes", "hbm_after_l2_write_bytes", "l2_hit_rate",
                               "time_seconds", "time_bound"}) {
      table.header.emplace_back(column);
    }
  }
  for (const AccountReport& r : report.accounts) {
    const Tally& tally = r.tally();
    const Flow hbm = tally.hbm_total();
    const Flow sm = tally.sm_total();
    const Flow sram = tally.sram_total();
    const Occupancy& kernel = r.main_kernel();
    const auto equal = r.predicted_equals_counted();
    std::vector<std::string> row{std::string(facts_of(r.method.algorithm).name)};
    row.push_back(fmt::format("{}", r.method.tiling.query_rows));
    row.push_back(fmt::format("{}", r.method.tiling.key_rows));
    row.push_back(r.splits ? fmt::format("{}", r.splits->splits) : "");
    row.push_back(r.method.pattern != nullptr ? pattern_text(r.method.pattern->request()) : "");
    for (const std::int64_t number :
         {hbm.read.value(), hbm.written.value(), hbm.total().value(), sm.read.value(), sm.written.value(),
          sram.read.value(), sram.written.value(), r.peak_intermediate().value(),
          tally.peak_allocated.value(), r.flops.paper.value().value(), r.flops.exact.value().value(),
          tally.work.products.value(), tally.work.rescale.value(), tally.work.exponentials.value()}) {
      row.push_back(fmt::format("{}", number));
    }
    row.push_back(fmt::format("{}", r.intensity().value));
    row.push_back(fmt::format("{}", kernel.blocks.value()));
    row.push_back(fmt::format("{}", kernel.blocks_per_sm));
    row.push_back(fmt::format("{}", kernel.waves));
    row.push_back(fmt::format("{}", kernel.sm_share));
    row.push_back(equal ? (*equal ? "true" : "false") : "");
    if (simulated && !r.simulation) {
      row.insert(row.end(), 5, "");
    } else if (simulated) {
      const AfterL2& after = r.simulation->after_l2;
      const auto& time = r.simulation->time;
      row.push_back(fmt::format("{}", after.hbm.read.value()));
      row.push_back(fmt::format("{}", after.hbm.written.value()));
      row.push_back(fmt::format("{}", after.hit_rate()));
      row.push_back(time ? fmt::format("{}", time->total.value) : "");
      row.push_back(time ? time->bound : "");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace flashsim
