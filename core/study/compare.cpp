#include "core/study/compare.hpp"

#include <utility>

namespace flashsim {

Result<CompareReport> make_comparison(const AccountRequest& request, const Progress& progress) {
  CompareReport report{.tiles = request.tiles, .splits = request.splits, .pattern = request.pattern};
  for (const AlgorithmFacts& facts : kAlgorithms) {
    AccountRequest one = request;
    one.algorithm = facts.algorithm;
    if (facts.algorithm == Algorithm::block_sparse && !request.pattern) continue;
    if (facts.algorithm != Algorithm::block_sparse) one.pattern.reset();
    if (facts.algorithm != Algorithm::split_kv) one.splits.reset();
    auto account = make_account(one, progress);
    if (!account) return account.error();
    report.accounts.push_back(std::move(account).value());
  }
  return report;
}

}  // namespace flashsim
