#include "app/views/measure_view.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/views/account_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

constexpr double kGiga = 1e9;

std::string label_of(ByteFigureKind kind) {
  switch (kind) {
    case ByteFigureKind::sm_read: return "reads into the SMs";
    case ByteFigureKind::sm_written: return "writes out of them";
    case ByteFigureKind::hbm_read: return "HBM reads";
    case ByteFigureKind::hbm_written: return "HBM writes";
    case ByteFigureKind::papers_hbm: return "HBM traffic, as papers count";
    case ByteFigureKind::peak_memory: return "peak memory above inputs";
  }
  return "";
}

/// "+4.9 %"
std::string difference_text(const std::optional<double>& share) {
  if (!share) return "";
  if (std::isinf(*share)) return "from nothing";
  if (*share == 0) return "0 %";
  const double size = std::fabs(100 * *share);
  return fmt::format("{}{} %", *share < 0 ? "−" : "+",
                     size < 0.01 ? std::string("0.01 or less") : three_digits(size));
}

std::string size_or(const std::optional<Bytes>& size, const char* otherwise) {
  return size ? size_text(*size) : otherwise;
}

std::string name_text(const KernelReport& kernel) { return std::string(facts_of(kernel.kernel).name); }

Title title(const MeasureReport& r, const KernelReport& kernel) {
  return {fmt::format("{} on {}", name_text(kernel), r.device.name),
          fmt::format("{} · tiles {}{}{} · {}", problem_text(kernel.plan.problem),
                      tiling_text(kernel.account.method.tiling), method_text(kernel.account.method),
                      kernel.account.method.deterministic ? " · deterministic" : "", r.machine.title)};
}

std::string seen_text(const ByteFigure& figure) {
  return size_or(figure.seen, figure.missing ? "not available" : "not counted");
}

/// Bytes, under the name of who counted them.
TableBlock traffic_table(const KernelReport& kernel) {
  const ByteSource source = kernel.measurement->bytes;
  const bool modelled = source == ByteSource::modelled;
  TableBlock table{.heading = "Traffic", .columns = {"modelled"}};
  if (!modelled) table.columns = {"model", std::string(name_of(source)), "difference"};
  for (const ByteFigure& figure : kernel.bytes) {
    if (figure.kind == ByteFigureKind::peak_memory) continue;
    std::vector<std::string> row{label_of(figure.kind), size_or(figure.model, "not simulated")};
    if (!modelled) row.insert(row.end(), {seen_text(figure), difference_text(figure.difference())});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TableBlock time_table(const KernelReport& kernel) {
  const TimeFigure& time = *kernel.time;
  const ByteFigure& peak = kernel.figure(ByteFigureKind::peak_memory);
  return {.heading = "Time and memory",
          .columns = {"model", "measured", "difference"},
          .rows = {{"time, median", time.model ? seconds_text(*time.model) : "–", seconds_text(time.median),
                    difference_text(time.difference())},
                   {label_of(peak.kind), size_or(peak.model, "–"), seen_text(peak),
                    difference_text(peak.difference())}}};
}

std::string place_text(const Problem& p, const Place& at, bool column) {
  std::string text;
  if (p.batch > 1) text += fmt::format("batch {}, ", at.batch);
  if (p.heads > 1) text += fmt::format("head {}, ", at.head);
  text += fmt::format("row {}", at.row);
  return column ? text + fmt::format(", column {}", at.column) : text;
}

/// "all 512 rows", "512 of 262 144 rows"
std::string rows_text(const RowSample& sample, const char* rows = "rows") {
  const auto checked = static_cast<std::int64_t>(sample.rows.size());
  return sample.whole() ? fmt::format("all {} {}", grouped(checked), rows)
                        : fmt::format("{} of {} {}", grouped(checked), grouped(sample.of), rows);
}

/// What was checked, where all of it agrees.
std::string checked_text(const KernelReport& kernel) {
  if (!kernel.gradient_verification) return rows_text(kernel.verification.sample);
  const GradientVerification& g = *kernel.gradient_verification;
  return fmt::format("{} of dQ, {} of dK and dV, and the O and L that they are made of", rows_text(g.queries),
                     rows_text(g.keys));
}

/// The first wrong tensor: on how many of its rows, and where first.
std::string wrong_text(const KernelReport& kernel) {
  for (const auto& [name, comparison] : kernel.checked()) {
    if (!comparison->first_wrong) continue;
    const Element& first = *comparison->first_wrong;
    return fmt::format("WRONG on {} of {} checked rows, first {} at {}: {}, and the truth is {}; not timed",
                       grouped(comparison->wrong_rows), grouped(comparison->rows), name,
                       place_text(kernel.plan.problem, first.at, name != "L"), value_text(first.got),
                       value_text(first.expected));
  }
  return "WRONG; not timed";
}

VerdictLine verdict_line(const KernelReport& kernel) {
  if (kernel.verdict == Verdict::right) {
    return {Tone::good, fmt::format("right: {} within rounding of the truth", checked_text(kernel))};
  }
  if (kernel.verdict == Verdict::undecided) {
    return {Tone::bad, fmt::format("undecided: rounding alone may make {} as wrong as zeros would be",
                                   kernel.verification.says_nothing() ? "O" : "a gradient")};
  }
  return {Tone::bad, wrong_text(kernel)};
}

std::string clock_text(double hz) { return three_digits(hz / kGiga) + " GHz"; }

FactsBlock how_facts(const MeasureReport& r, const KernelReport& kernel) {
  const DeviceMeasurement& m = *kernel.measurement;
  const TimeFigure& time = *kernel.time;
  FactsBlock block{.heading = "How"};
  block.facts.push_back(
      {"repeats", grouped(static_cast<std::int64_t>(m.seconds.size())),
       fmt::format("from {} to {}, on {} set{} of inputs", seconds_text(time.least), seconds_text(time.most),
                   m.input_sets, m.input_sets == 1 ? "" : "s in turn")});
  block.facts.push_back(
      {"cache", std::string(name_of(r.how.cache)),
       r.how.cache == CacheState::cold ? "flushed before each run" : "as the run before left it"});
  if (!time.model) block.facts.push_back({"no time in the model", "", time.no_model});
  if (const auto clock = kernel.sm_clock_hz()) {
    block.facts.push_back(
        {"SM clock", clock_text(*clock),
         fmt::format("{}; the machine file says {}",
                     kernel.counter("sm_clock_hz") ? "while the kernels ran" : "right after the repeats",
                     clock_text(r.machine.clock_hz))});
  }
  if (m.memory_clock_hz) block.facts.push_back({"memory clock", clock_text(*m.memory_clock_hz), ""});
  for (const KernelResources& k : m.kernels) {
    std::string model;
    for (const Occupancy& occupancy : kernel.account.kernels) {
      if (occupancy.kernel == k.name) model = fmt::format(", {} in the model", occupancy.blocks_per_sm);
    }
    block.facts.push_back(
        {fmt::format("kernel {}", k.name), fmt::format("{} per SM", k.blocks_per_sm),
         fmt::format("blocks{}; {} of them, {} threads each, {} registers and {} of local memory a thread, "
                     "{} of shared memory a block",
                     model, grouped(k.blocks), k.threads_per_block, k.registers_per_thread,
                     size_text(k.local_memory_per_thread), size_text(k.shared_memory_per_block))});
  }
  if (m.library_workspace != Bytes()) {
    block.facts.push_back({"library workspace", size_text(m.library_workspace), "part of the peak"});
  }
  return block;
}

/// The counters that aren't bytes.
FactsBlock counter_facts(const KernelReport& kernel) {
  FactsBlock block{.heading = "Counted besides"};
  for (const auto& [what, label, note] :
       {std::tuple{"shared_wavefronts", "shared memory", "wavefronts, of 128 bytes each"},
        {"tensor_instructions", "tensor units", "instructions, warp by warp"},
        {"exponential_instructions", "special functions", "instructions, warp by warp"}}) {
    for (const CounterReading& reading : kernel.measurement->counters) {
      if (reading.what != what) continue;
      block.facts.push_back({label, reading.value ? grouped(*reading.value) : "not available", note});
    }
  }
  return block;
}

ListBlock difference_list(const KernelReport& kernel) {
  ListBlock list{.heading = "More than 5 % off"};
  for (const Difference& difference : kernel.differences) {
    std::string label = "time";
    for (const ByteFigure& figure : kernel.bytes) {
      if (figure.name() == difference.figure) label = label_of(figure.kind);
    }
    list.items.push_back(fmt::format("{}, {}: {}", label, difference_text(difference.share),
                                     fmt::join(difference.sentences, "; ")));
  }
  return list;
}

void add_kernel(const MeasureReport& r, const KernelReport& kernel, Document& document) {
  document.emplace_back(title(r, kernel));
  if (!kernel.measurement) {
    document.emplace_back(verdict_line(kernel));
    return;
  }
  document.emplace_back(traffic_table(kernel));
  document.emplace_back(time_table(kernel));
  document.emplace_back(verdict_line(kernel));
  const DeviceMeasurement& m = *kernel.measurement;
  if (!m.no_counters.empty()) {
    LinesBlock lines{{fmt::format("Bytes are {}: {}.", name_of(m.bytes), m.no_counters)}};
    if (!m.remedy.empty()) lines.lines.push_back(fmt::format("To have them measured: {}.", m.remedy));
    document.emplace_back(std::move(lines));
  }
  if (!kernel.account.not_simulated.empty()) {
    document.emplace_back(VerdictLine{Tone::neutral, kernel.account.not_simulated});
  }
  if (!kernel.account.discrepancies.empty()) document.emplace_back(check_line(kernel.account));
  if (!kernel.differences.empty()) document.emplace_back(difference_list(kernel));
  document.emplace_back(how_facts(r, kernel));
  if (FactsBlock counters = counter_facts(kernel); !counters.facts.empty()) {
    document.emplace_back(std::move(counters));
  }
}

/// Time and bytes side by side.
TableBlock comparison_table(const MeasureReport& r) {
  TableBlock table{
      .heading = "Side by side",
      .columns = {"", "time", "of the first", "HBM read + written", "of the first", "peak memory"},
      .left = {1}};
  const KernelReport* first = nullptr;
  const auto hbm_of = [](const KernelReport& kernel) {
    return kernel.figure(ByteFigureKind::papers_hbm).seen;
  };
  for (const KernelReport& kernel : r.kernels) {
    std::vector<std::string> row{name_text(kernel), std::string(name_of(kernel.plan.problem.storage))};
    if (!kernel.measurement) {
      row.insert(row.end(), {"wrong: not timed", "", "", "", ""});
      table.rows.push_back(std::move(row));
      continue;
    }
    if (first == nullptr) first = &kernel;
    const auto hbm = hbm_of(kernel);
    const auto first_hbm = hbm_of(*first);
    row.insert(
        row.end(),
        {seconds_text(kernel.time->median),
         three_digits(kernel.time->median.value / first->time->median.value), size_or(hbm, "not counted"),
         hbm && first_hbm && *first_hbm != Bytes() ? three_digits(ratio(*hbm, *first_hbm)) : "",
         size_or(kernel.figure(ByteFigureKind::peak_memory).seen, "")});
    table.rows.push_back(std::move(row));
  }
  return table;
}

FactsBlock device_facts(const MeasureReport& r) {
  FactsBlock block{.heading = "Where and when"};
  block.facts.push_back(
      {"GPU", r.device.name,
       fmt::format("compute capability {}, {} of memory, {} free before", r.device.compute_capability,
                   size_text(r.device.memory), size_text(r.device.free_memory))});
  block.facts.push_back({"driver", r.device.driver.empty() ? std::string("unknown") : r.device.driver,
                         fmt::format("CUDA {}", r.device.runtime)});
  block.facts.push_back(
      {"model", r.machine.title, fmt::format("machine {}, {} rates", r.machine.name, r.machine.rates)});
  block.facts.push_back({"date", r.date, "UTC"});
  return block;
}

void add_left_out(const MeasureReport& r, Document& document) {
  LinesBlock lines;
  for (const LeftOutKernel& each : r.left_out) {
    lines.lines.push_back(
        fmt::format("{} {}: {}", facts_of(each.kernel).name, each.failed ? "FAILED" : "left out", each.why));
  }
  if (!lines.lines.empty()) document.emplace_back(std::move(lines));
}

}  // namespace

Document measure_document(const MeasureReport& r) {
  Document document;
  for (const KernelReport& kernel : r.kernels) add_kernel(r, kernel, document);
  if (r.kernels.size() > 1) document.emplace_back(comparison_table(r));
  add_left_out(r, document);
  document.emplace_back(device_facts(r));
  return document;
}

CsvTable measure_csv(const MeasureReport& r) {
  CsvTable table{.header = {"kernel", "section", "item", "quantity", "value"}};
  const nlohmann::ordered_json json = measure_json(r);
  const auto text_of = [](const nlohmann::ordered_json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
  };
  const auto add = [&](const std::string& kernel, const char* section, const std::string& item,
                       const std::string& quantity, const nlohmann::ordered_json& value) {
    table.rows.push_back({kernel, section, item, quantity, text_of(value)});
  };
  for (const auto& [key, value] : json["input"].items()) add("", "input", "", key, value);
  for (const char* section : {"device", "machine"}) {
    for (const auto& [key, value] : json["result"][section].items()) add("", section, "", key, value);
  }
  add("", "date", "", "utc", json["result"]["date"]);
  for (const auto& kernel : json["result"]["kernels"]) {
    const std::string name = kernel["kernel"];
    for (const char* key :
         {"algorithm", "pass", "dtype", "tile_q", "tile_k", "splits", "deterministic", "verdict"}) {
      add(name, "kernel", "", key, kernel[key]);
    }
    const auto& m = kernel["measurement"];
    if (m.is_null()) continue;
    for (const char* key : {"bytes", "no_counters", "remedy", "input_sets", "sm_clock_hz", "memory_clock_hz",
                            "library_workspace_bytes"}) {
      add(name, "how", "", key, m[key]);
    }
    for (const auto& figure : m["figures"]) {
      for (const char* key : {"model", "seen", "difference"}) {
        add(name, "figure", figure["figure"], key, figure[key]);
      }
    }
    for (const auto& [key, value] : m["time"].items()) {
      if (!value.is_array()) add(name, "time", "", key, value);
    }
    for (const auto& seconds : m["time"]["repeats_seconds"]) add(name, "repeat", "", "seconds", seconds);
    for (const auto& reading : m["counters"]) {
      add(name, "counter", reading["what"], text_of(reading["metric"]), reading["value"]);
    }
    for (const auto& launched : m["kernels"]) {
      for (const auto& [key, value] : launched.items()) {
        if (key != "kernel") add(name, "launch", launched["kernel"], key, value);
      }
    }
    for (const auto& difference : m["differences"]) {
      for (const auto& sentence : difference["sentences"]) {
        add(name, "difference", difference["figure"], "sentence", sentence);
      }
    }
  }
  for (const auto& each : json["result"]["left_out"]) add(each["kernel"], "left_out", "", "why", each["why"]);
  return table;
}

}  // namespace flashsim
