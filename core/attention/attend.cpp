#include "core/attention/attend.hpp"

#include <algorithm>

#include "core/attention/executor.hpp"
#include "core/base/rounding.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

/// Lets the executor take each step, and the observer see it.
template <class T>
class Observed : public Listener {
 public:
  Observed(Executor<T>& executor, StepObserver& observer) : executor_(executor), observer_(observer) {}
  void step(const Step& step) override {
    executor_.step(step);
    observer_.executed(step, executor_);
  }

 private:
  Executor<T>& executor_;
  StepObserver& observer_;
};

}  // namespace

template <class T>
Outputs<T> attend(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                  const Inputs<T>& inputs, const Execution& execution) {
  StepObserver* observer = execution.observer;
  Outputs<T> outputs{Tensor4<T>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                     Tensor4<T>(problem.batch, problem.heads, problem.seq, 1)};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      HeadTensors<T> head{
          .v = inputs.v.matrix(b, kv_head), .o = outputs.o.matrix(b, h), .lse = outputs.lse.matrix(b, h)};
      if (inputs.scores_given()) {
        head.scores = inputs.scores.matrix(b, h);
      } else {
        head.q = inputs.q.matrix(b, h);
        head.k = inputs.k.matrix(b, kv_head);
      }
      Executor<T> executor(algorithm, problem, tiling, switches, head);
      if (observer != nullptr) {
        observer->begin_head(b, h);
        Observed<T> observed(executor, *observer);
        walk(algorithm, problem, tiling, observed);
      } else {
        walk(algorithm, problem, tiling, executor);
      }
      executor.complete();
    }
  }
  return outputs;
}

template <class T>
void round_to_storage(const Problem& problem, Tensor4<T>& tensor) {
  if (!is_narrower<T>(problem.storage)) return;
  for (T& value : tensor.data()) value = stored_as(problem.storage, value);
}

template Outputs<float> attend(Algorithm, const Problem&, Tiling, Switches, const Inputs<float>&,
                               const Execution&);
template Outputs<double> attend(Algorithm, const Problem&, Tiling, Switches, const Inputs<double>&,
                                const Execution&);
template void round_to_storage(const Problem&, Tensor4<float>&);
template void round_to_storage(const Problem&, Tensor4<double>&);

}  // namespace flashsim
