// Every algorithm on one problem, side by side.
#pragma once

#include <optional>
#include <vector>

#include "core/study/account.hpp"

namespace flashsim {

struct CompareReport {
  TilingRequest tiles;                  ///< as they were asked for; what is absent each algorithm chooses
  std::optional<SplitsRequest> splits;  ///< as they were asked for
  std::optional<PatternRequest> pattern;
  std::vector<AccountReport> accounts;  ///< in the order of kAlgorithms
};

/// The account of every algorithm on the problem of `request`, whose own algorithm is passed over;
/// block-sparse attention where a pattern is asked for. What belongs to one algorithm counts for that one.
Result<CompareReport> make_comparison(const AccountRequest& request, const Progress& progress = {});

}  // namespace flashsim
