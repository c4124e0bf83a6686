#include "core/study/traffic.hpp"

#include <nlohmann/json.hpp>

namespace flashsim {

using nlohmann::ordered_json;

std::vector<TensorLine> tensor_lines(const Tally& tally, const Problem& problem) {
  std::vector<TensorLine> lines;
  for (const Operand operand : kOperands) {
    const auto add = [&](Flow flow, bool initial) {
      if (flow.total() == Bytes()) return;
      // There are as many parts as were written.
      const Bytes whole = is_part(operand) ? flow.written : whole_size(operand, problem);
      lines.push_back({.name = std::string(name_of(operand)) + (initial ? " initial" : ""),
                       .operand = operand,
                       .initial = initial,
                       .flow = flow,
                       .crossings = ratio(flow.total(), whole)});
    };
    add(tally.initial_of(operand), true);
    add(tally.hbm_of(operand), false);
  }
  return lines;
}

ordered_json flow_json(Flow flow) {
  return {{"read_bytes", flow.read.value()}, {"write_bytes", flow.written.value()}};
}

ordered_json hbm_json(const Tally& tally, const Problem& problem) {
  ordered_json tensors = ordered_json::array();
  for (const TensorLine& line : tensor_lines(tally, problem)) {
    ordered_json tensor{{"tensor", line.name}};
    tensor.update(flow_json(line.flow));
    tensor["crossings"] = line.crossings;
    tensors.push_back(std::move(tensor));
  }
  const Flow total = tally.hbm_total();
  ordered_json hbm = flow_json(total);
  hbm["total_bytes"] = total.total().value();
  hbm["tensors"] = std::move(tensors);
  return hbm;
}

ordered_json discrepancies_json(const std::vector<Discrepancy>& discrepancies) {
  ordered_json list = ordered_json::array();
  for (const Discrepancy& d : discrepancies) {
    list.push_back(
        {{"figure", d.figure}, {"predicted", d.predicted.value()}, {"counted", d.counted.value()}});
  }
  return list;
}

}  // namespace flashsim
