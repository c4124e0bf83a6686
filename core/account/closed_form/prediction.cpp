#include "core/account/prediction.hpp"

#include <iterator>
#include <utility>

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/visited.hpp"
#include "core/account/tally_sum.hpp"

namespace flashsim {
namespace {

Prediction predict_forward(const Problem& problem, const Method& method, Explain explain) {
  switch (method.algorithm) {
    case Algorithm::standard: return predict_standard(problem, method, explain);
    case Algorithm::eager: return predict_eager(problem, method, explain);
    case Algorithm::three_pass:
    case Algorithm::three_pass_stored: return predict_three_pass(problem, method, explain);
    case Algorithm::flash1: return predict_flash1(problem, method, explain);
    case Algorithm::flash2: return predict_flash2(problem, method, explain);
    case Algorithm::memory_efficient: return predict_memory_efficient(problem, method, explain);
    case Algorithm::split_kv: return predict_split_kv(problem, method, explain);
    case Algorithm::block_sparse: return predict_block_sparse(problem, method, explain);
  }
  return {};
}

Prediction predict_backward(const Problem& problem, const Method& method, Explain explain) {
  switch (method.algorithm) {
    case Algorithm::standard: return predict_standard_backward(problem, method, explain);
    case Algorithm::eager: return predict_eager_backward(problem, method, explain);
    case Algorithm::flash1: return predict_flash1_backward(problem, method, explain);
    case Algorithm::flash2: return predict_flash2_backward(problem, method, explain);
    default: return {};
  }
  return {};
}

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// `first`, and then `then`. Nothing that `first` has made at its peak is given back before `then` ends.
Prediction one_after_the_other(Prediction first, Prediction then) {
  Tally& sum = first.tally;
  add_flows_and_work(sum, then.tally);
  sum.peak_allocated += then.tally.peak_allocated;
  append(sum.kernels, std::move(then.tally.kernels));
  append(first.explanations, std::move(then.explanations));
  append(first.intermediate, std::move(then.intermediate));
  append(first.allocated, std::move(then.allocated));
  first.recomputed += then.recomputed;
  return first;
}

Prediction predicted(const Problem& problem, const Method& method, Explain explain) {
  switch (method.pass) {
    case Pass::forward: return predict_forward(problem, method, explain);
    case Pass::backward: return predict_backward(problem, method, explain);
    case Pass::both:
      return one_after_the_other(predict_forward(problem, method, explain),
                                 predict_backward(problem, method, explain));
  }
  return {};
}

/// Products of a visible pair's gradients.
std::int64_t gradient_products(Algorithm algorithm) { return facts_of(algorithm).tiled ? 5 : 4; }

}  // namespace

Prediction predict(const Problem& problem, const Method& method) {
  return predicted(problem, method, Explain::yes);
}

Prediction predict_unexplained(const Problem& problem, const Method& method) {
  return predicted(problem, method, Explain::no);
}

ProblemFlops problem_flops(const Problem& problem, const Method& method) {
  const std::int64_t forward = method.pass == Pass::backward ? 0 : 1;
  const std::int64_t backward = method.pass == Pass::forward ? 0 : 1;
  const Formula heads("B·H", Count(problem.batch) * problem.heads);
  const Formula depth("d", problem.head_dim);
  const bool halved = problem.causal && problem.seq == problem.kv_seq;
  const std::int64_t paper = (4 * forward + 10 * backward) / (halved ? 2 : 1);
  const std::int64_t exact = 4 * forward + 2 * gradient_products(method.algorithm) * backward;
  const Count visible = method.algorithm == Algorithm::block_sparse
                            ? visible_pairs_of_pattern(problem, method)
                            : visible_pairs(problem);
  return {
      .paper = Formula(paper) * heads * Formula("N", problem.seq) * Formula("Nkv", problem.kv_seq) * depth,
      .exact = Formula(exact) * heads * Formula("visible pairs", visible) * depth};
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
