#include "core/account/prediction.hpp"

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/visited.hpp"

namespace flashsim {
namespace {

Prediction predicted(Algorithm algorithm, const Problem& problem, Tiling tiling, Explain explain) {
  switch (algorithm) {
    case Algorithm::standard: return predict_standard(problem, tiling, explain);
    case Algorithm::eager: return predict_eager(problem, tiling, explain);
    case Algorithm::flash1: return predict_flash1(problem, tiling, explain);
    case Algorithm::flash2: return predict_flash2(problem, tiling, explain);
  }
  return {};
}

}  // namespace

Prediction predict(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predicted(algorithm, problem, tiling, Explain::yes);
}

Prediction predict_unexplained(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predicted(algorithm, problem, tiling, Explain::no);
}

ProblemFlops problem_flops(const Problem& problem) {
  const Formula heads("B·H", Count(problem.batch) * problem.heads);
  const Formula depth("d", problem.head_dim);
  const bool halved = problem.causal && problem.seq == problem.kv_seq;
  return {.paper = Formula(halved ? 2 : 4) * heads * Formula("N", problem.seq) *
                   Formula("Nkv", problem.kv_seq) * depth,
          .exact = Formula(4) * heads * Formula("visible pairs", visible_pairs(problem)) * depth};
}

Bytes input_bytes(const Problem& problem) {
  return whole_size(Operand::Q, problem) + whole_size(Operand::K, problem) + whole_size(Operand::V, problem);
}

Bytes total_size(const std::vector<Alive>& alive, const Problem& problem) {
  Bytes total;
  for (const Alive& tensor : alive) total += whole_size(tensor.operand, problem);
  return total;
}

}  // namespace flashsim
