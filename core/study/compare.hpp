// Every algorithm on one problem, side by side.
#pragma once

#include <optional>
#include <vector>

#include "core/study/account.hpp"

namespace flashsim {

struct CompareReport {
  TilingRequest tiles;                  ///< as they were asked for; what is absent each algorithm chooses
  EagerPassList passes;                 ///< of eager
  bool deterministic = false;           ///< flash2's gradients
  std::optional<SplitsRequest> splits;  ///< as they were asked for
  std::optional<PatternRequest> pattern;
  std::vector<AccountReport> accounts;  ///< in the order of kAlgorithms
  std::vector<Algorithm> left_out;      ///< they have no backward pass, and it is asked for
};

/// The account of every algorithm that has the pass, on the problem of `request`, whose own algorithm is
/// passed over; block-sparse attention where a pattern is asked for. What is a choice of one algorithm alone
/// is no matter for the others.
Result<CompareReport> make_comparison(const AccountRequest& request, const Progress& progress = {});

}  // namespace flashsim
