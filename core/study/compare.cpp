#include "core/study/compare.hpp"

#include <utility>

namespace flashsim {

Result<CompareReport> make_comparison(const AccountRequest& request, const Progress& progress) {
  CompareReport report{.tiles = request.tiles,
                       .deterministic = request.deterministic.value_or(false),
                       .splits = request.splits,
                       .pattern = request.pattern};
  for (const AlgorithmFacts& facts : kAlgorithms) {
    if (request.pass.value_or(Pass::forward) != Pass::forward && !has_backward(facts.algorithm)) {
      report.left_out.push_back(facts.algorithm);
      continue;
    }
    if (facts.algorithm == Algorithm::block_sparse && !request.pattern) continue;
    AccountRequest one = request;
    one.algorithm = facts.algorithm;
    if (facts.algorithm != Algorithm::eager) one.passes.reset();
    if (facts.algorithm != Algorithm::flash2) one.deterministic.reset();
    if (facts.algorithm != Algorithm::block_sparse) one.pattern.reset();
    if (facts.algorithm != Algorithm::split_kv) one.splits.reset();
    auto account = make_account(one, progress);
    if (!account) return account.error();
    if (facts.algorithm == Algorithm::eager) report.passes = listed(account->problem, account->method);
    report.accounts.push_back(std::move(account).value());
  }
  return report;
}

}  // namespace flashsim
