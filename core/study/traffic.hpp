// HBM traffic by tensor, as tables and JSON list it, whether it was predicted or counted, and the JSON of
// where the two differ.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/account/check.hpp"
#include "core/account/tally.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// One line of the traffic table.
struct TensorLine {
  std::string name;  ///< "K", "O initial"
  Operand operand{};
  bool initial = false;
  Flow flow;
  double crossings = 0;  ///< bytes moved, in whole tensors
};

/// The lines of HBM traffic that aren't empty.
std::vector<TensorLine> tensor_lines(const Tally& tally, const Problem& problem);

/// {"read_bytes", "write_bytes"}
nlohmann::ordered_json flow_json(Flow flow);
/// The total and the lines.
nlohmann::ordered_json hbm_json(const Tally& tally, const Problem& problem);
/// Where predicted and counted differ.
nlohmann::ordered_json discrepancies_json(const std::vector<Discrepancy>& discrepancies);

}  // namespace flashsim
