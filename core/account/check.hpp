// Predicted against counted: the check that runs with every account.
#pragma once

#include <string>
#include <vector>

#include "core/account/tally.hpp"

namespace flashsim {

struct Discrepancy {
  std::string figure;
  Count predicted;
  Count counted;
};

/// Every figure on which the two differ; a figure that only one of them has differs too.
std::vector<Discrepancy> discrepancies(const Tally& predicted, const Tally& counted);

}  // namespace flashsim
