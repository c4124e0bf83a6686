// How HBM traffic looks, and what the check of predicted against counted comes to.
#pragma once

#include <string>
#include <vector>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/account/check.hpp"
#include "core/study/traffic.hpp"

namespace flashsim {

/// One line a tensor, and the total.
TableBlock traffic_table(const std::string& heading, const Tally& tally, const Problem& problem);

/// The sentence that the check comes to. `steps` is what was walked: "16 960 steps a head".
VerdictLine check_line(const std::vector<Discrepancy>& discrepancies, const std::string& steps);

/// Rows of a table of section, item, quantity and value.
void add_flow_rows(CsvTable& table, const std::string& section, const std::string& item, Flow flow);
void add_traffic_rows(CsvTable& table, const std::string& section, const Tally& tally,
                      const Problem& problem);

}  // namespace flashsim
