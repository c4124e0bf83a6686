#include "core/account/prediction.hpp"

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/visited.hpp"

namespace flashsim {

Prediction predict(const Problem& problem, const Method& method) {
  switch (method.algorithm) {
    case Algorithm::standard: return predict_standard(problem, method);
    case Algorithm::eager: return predict_eager(problem, method);
    case Algorithm::flash1: return predict_flash1(problem, method);
    case Algorithm::flash2: return predict_flash2(problem, method);
    case Algorithm::split_kv: return predict_split_kv(problem, method);
    case Algorithm::block_sparse: return predict_block_sparse(problem, method);
  }
  return {};
}

ProblemFlops problem_flops(const Problem& problem) {
  const Formula heads("B·H", Count(problem.batch) * problem.heads);
  const Formula depth("d", problem.head_dim);
  const bool halved = problem.causal && problem.seq == problem.kv_seq;
  return {.paper = Formula(halved ? 2 : 4) * heads * Formula("N", problem.seq) *
                   Formula("Nkv", problem.kv_seq) * depth,
          .exact = Formula(4) * heads * Formula("visible pairs", visible_pairs(problem)) * depth};
}

ProblemFlops problem_flops(const Problem& problem, const Method& method) {
  ProblemFlops flops = problem_flops(problem);
  if (method.algorithm == Algorithm::block_sparse) flops.exact = exact_of_pattern(problem, method);
  return flops;
}

Bytes input_bytes(const Problem& problem) {
  return whole_size(Operand::Q, problem) + whole_size(Operand::K, problem) + whole_size(Operand::V, problem);
}

Bytes total_size(const std::vector<Alive>& alive) {
  Bytes total;
  for (const Alive& tensor : alive) total += tensor.size;
  return total;
}

}  // namespace flashsim
