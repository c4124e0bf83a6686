#include "app/views/machine_view.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/views/traffic_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

std::string percent(double share) { return three_digits(100 * share) + " %"; }

FactsBlock after_l2_facts(const AccountReport& r) {
  const AfterL2& after = r.simulation->after_l2;
  const std::string parts =
      r.machine.l2_partitions == 1 ? "" : fmt::format(" in {} partitions", r.machine.l2_partitions);
  FactsBlock block{.heading = fmt::format("Behind the L2, {}{}", size_text(r.machine.l2), parts)};
  block.facts.push_back({"HBM read", size_text(after.hbm.read),
                         fmt::format("{} of {} into the SMs hit; between {} (each byte once) and all of it",
                                     percent(after.hit_rate()), size_text(after.uncached_read),
                                     size_text(after.compulsory_read))});
  block.facts.push_back({"HBM written", size_text(after.hbm.written),
                         after.waiting == Bytes() ? std::string("all that was stored")
                                                  : fmt::format("and {} still wait in the cache at the end",
                                                                size_text(after.waiting))});
  return block;
}

std::string resource_label(const std::string& resource) {
  for (const auto& [name, label] : {std::pair{"tensor", "tensor units"},
                                    {"fma", "FMA units"},
                                    {"exponential", "exponentials"},
                                    {"sram", "shared memory"},
                                    {"l2", "L2"},
                                    {"hbm", "HBM"}}) {
    if (resource == name) return label;
  }
  return resource;
}

FactsBlock time_facts(const AccountReport& r) {
  const PredictedTime& time = *r.simulation->time;
  FactsBlock block{.heading = "Time, predicted"};
  block.facts.push_back(
      {"in all", seconds_text(time.total),
       fmt::format("{}FLOP/s as papers count, {} of the {} peak; {} rates",
                   decimal_text(static_cast<std::int64_t>(time.rate.value)), percent(time.share_of_peak),
                   name_of(r.problem.storage), r.machine.rates)});
  for (const SimulatedKernel& kernel : r.simulation->kernels) {
    const bool alone = r.simulation->kernels.size() == 1;
    block.facts.push_back(
        {alone ? "bound" : kernel.name, alone ? resource_label(kernel.bound) : seconds_text(kernel.total),
         fmt::format("{}{} for the blocks, {} per SM, which keep the SMs {} busy",
                     alone ? "" : resource_label(kernel.bound) + "; ", seconds_text(kernel.blocks),
                     kernel.blocks_per_sm, percent(kernel.busy_share))});
  }
  return block;
}

BarsBlock resource_bars(const PredictedTime& time) {
  BarsBlock bars;
  for (const ResourceTime& each : time.resources) {
    bars.bars.push_back(
        {resource_label(each.resource) + " alone", seconds_text(each.time), each.time.value, ""});
  }
  bars.bars.push_back({"predicted", seconds_text(time.total), time.total.value, ""});
  return bars;
}

}  // namespace

void add_machine(const AccountReport& r, Document& document) {
  if (!r.not_simulated.empty()) document.emplace_back(VerdictLine{Tone::neutral, r.not_simulated});
  if (!r.simulation) return;
  document.emplace_back(after_l2_facts(r));
  if (!r.simulation->time) {
    document.emplace_back(VerdictLine{Tone::neutral, r.simulation->no_time});
    return;
  }
  document.emplace_back(time_facts(r));
  document.emplace_back(resource_bars(*r.simulation->time));
}

void add_machine_rows(const AccountReport& r, CsvTable& table) {
  if (!r.simulation) return;
  const auto add = [&](const std::string& section, const std::string& item, const std::string& quantity,
                       const auto& value) {
    table.rows.push_back({section, item, quantity, fmt::format("{}", value)});
  };
  const AfterL2& after = r.simulation->after_l2;
  add_flow_rows(table, "hbm_after_l2", "total", after.hbm);
  add("hbm_after_l2", "waiting", "bytes", after.waiting.value());
  add("hbm_after_l2", "hit_rate", "", after.hit_rate());
  add("hbm_after_l2", "compulsory", "read_bytes", after.compulsory_read.value());
  add("hbm_after_l2", "uncached", "read_bytes", after.uncached_read.value());
  if (!r.simulation->time) return;
  const PredictedTime& time = *r.simulation->time;
  add("time", "total", "seconds", time.total.value);
  add("time", "bound", "", time.bound);
  add("time", "rate", "flops_per_second", time.rate.value);
  add("time", "share_of_peak", "", time.share_of_peak);
  for (const ResourceTime& each : time.resources) add("time", each.resource, "seconds", each.time.value);
  for (const SimulatedKernel& kernel : r.simulation->kernels) {
    add("time", "kernel " + kernel.name, "seconds", kernel.total.value);
  }
}

}  // namespace flashsim
