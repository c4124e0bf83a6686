#include "core/study/kernel_account.hpp"

namespace flashsim {

Result<AccountReport> account_of(const KernelOnMachine& asked, const Progress& progress) {
  const Problem& p = asked.problem;
  AccountSources sources;
  sources.habits = habits_of(asked.kernel, p);
  sources.own_method = method_of(asked.kernel, p);
  const Method& own = sources.own_method;
  return make_account({.algorithm = own.algorithm,
                       .batch = p.batch,
                       .heads = p.heads,
                       .kv_heads = p.kv_heads,
                       .seq = p.seq,
                       .kv_seq = p.kv_seq,
                       .head_dim = p.head_dim,
                       .dtype = p.storage,
                       .causal = p.causal,
                       .alignment = p.alignment,
                       .pass = own.pass,
                       .deterministic = asked.deterministic,
                       .tiles = {own.tiling.query_rows, own.tiling.key_rows},
                       .gpu = asked.gpu,
                       .splits = asked.splits,
                       .count_never = asked.count_never,
                       .machine = asked.simulate},
                      progress, sources);
}

}  // namespace flashsim
