#include "app/views/traffic_view.hpp"

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

const std::string kNothing = "–";

std::string size_or_dash(Bytes size) { return size == Bytes() ? kNothing : size_text(size); }

/// "L" is told by name where a newcomer first meets it.
std::string label_of(const TensorLine& line) {
  switch (line.operand) {
    case Operand::L: return line.name + "  logsumexp";
    case Operand::m: return line.name + "  row maximum";
    case Operand::l: return line.name + "  row sum";
    case Operand::D: return line.name + "  Σ dO ∘ O";
    case Operand::Z: return line.name + "  dropout mask";
    default: return line.name;
  }
}

}  // namespace

TableBlock traffic_table(const std::string& heading, const Tally& tally, const Problem& problem) {
  TableBlock table{.heading = heading, .columns = {"read", "written", "total", "crossings"}};
  for (const TensorLine& line : tensor_lines(tally, problem)) {
    table.rows.push_back(
        {label_of(line), size_or_dash(line.flow.read), size_or_dash(line.flow.written),
         size_text(line.flow.total()),
         line.crossings < 0.1 ? three_digits(line.crossings) : fmt::format("{:.1f}", line.crossings)});
  }
  const Flow total = tally.hbm_total();
  table.total = {"total", size_text(total.read), size_text(total.written), size_text(total.total()), ""};
  return table;
}

VerdictLine check_line(const std::vector<Discrepancy>& discrepancies, const std::string& steps) {
  if (discrepancies.empty()) {
    return {Tone::good, fmt::format("predicted = counted, to the byte, over {}", steps)};
  }
  const Discrepancy& first = discrepancies.front();
  return {Tone::bad, fmt::format("predicted ≠ counted on {} figures, first {}: predicted {}, counted {}",
                                 discrepancies.size(), first.figure, grouped(first.predicted.value()),
                                 grouped(first.counted.value()))};
}

void add_flow_rows(CsvTable& table, const std::string& section, const std::string& item, Flow flow) {
  table.rows.push_back({section, item, "read_bytes", fmt::format("{}", flow.read.value())});
  table.rows.push_back({section, item, "write_bytes", fmt::format("{}", flow.written.value())});
}

void add_traffic_rows(CsvTable& table, const std::string& section, const Tally& tally,
                      const Problem& problem) {
  for (const TensorLine& line : tensor_lines(tally, problem)) {
    add_flow_rows(table, section, line.name, line.flow);
    table.rows.push_back({section, line.name, "crossings", fmt::format("{}", line.crossings)});
  }
  const Flow total = tally.hbm_total();
  add_flow_rows(table, section, "total", total);
  table.rows.push_back({section, "total", "total_bytes", fmt::format("{}", total.total().value())});
}

}  // namespace flashsim
