#include "core/study/kernel_account.hpp"

namespace flashsim {

Result<AccountReport> account_of(const KernelOnMachine& asked, const Progress& progress) {
  const Problem& p = asked.problem;
  AccountSources sources;
  sources.habits = habits_of(asked.kernel, p);
  sources.own_method = method_of(asked.kernel, p);
  const Method& own = sources.own_method;
  AccountRequest request = request_of(p);
  request.algorithm = own.algorithm;
  request.pass = own.pass;
  request.deterministic = asked.deterministic;
  request.tiles = {own.tiling.query_rows, own.tiling.key_rows};
  request.gpu = asked.gpu;
  request.splits = asked.splits;
  request.count_never = asked.count_never;
  request.machine = asked.simulate;
  return make_account(request, progress, sources);
}

}  // namespace flashsim
