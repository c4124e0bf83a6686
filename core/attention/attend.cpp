#include "core/attention/attend.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <mutex>
#include <utility>

#include "core/attention/executor.hpp"
#include "core/base/parallel.hpp"
#include "core/base/rounding.hpp"
#include "core/schedule/tile_grid.hpp"

namespace flashsim {
namespace {

/// Lets the executor take each step, and then another listener.
template <class T>
class Followed : public Listener {
 public:
  Followed(Executor<T>& executor, Listener* next) : executor_(executor), next_(next) {}
  void step(const Step& step) override {
    executor_.step(step);
    if (next_ != nullptr) next_->step(step);
  }
  void kernel(std::string_view name, std::int64_t blocks) override {
    if (next_ != nullptr) next_->kernel(name, blocks);
  }
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override {
    if (next_ != nullptr) next_->launches(name, launches, blocks);
  }
  void allocate(Operand operand, Bytes size) override {
    if (next_ != nullptr) next_->allocate(operand, size);
  }
  void release(Operand operand, Bytes size) override {
    if (next_ != nullptr) next_->release(operand, size);
  }

 private:
  Executor<T>& executor_;
  Listener* next_;
};

/// Lets the executor take each step, and an observer see it.
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

/// Adds up what tasks have done and tells it, one thread at a time.
class Meter {
 public:
  Meter(const Execution& execution, std::int64_t all) : execution_(execution), all_(all) {}
  void add(std::int64_t done) {
    const std::int64_t so_far = done_ += done;
    if (!execution_.progress) return;
    const std::unique_lock only_one(mutex_, std::try_to_lock);
    if (only_one) execution_.progress(static_cast<double>(so_far) / static_cast<double>(all_));
  }

 private:
  const Execution& execution_;
  std::int64_t all_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex mutex_;
};

/// An executor a thread, made by the thread that needs it: its memory then lies near that thread.
template <class T>
class Executors {
 public:
  Executors(int threads, std::function<std::unique_ptr<Executor<T>>()> make)
      : all_(static_cast<std::size_t>(threads)), make_(std::move(make)) {}
  Executor<T>& of(int thread) {
    auto& mine = all_[static_cast<std::size_t>(thread)];
    if (!mine) mine = make_();
    return *mine;
  }

 private:
  std::vector<std::unique_ptr<Executor<T>>> all_;
  std::function<std::unique_ptr<Executor<T>>()> make_;
};

Listener* follower(const Execution& execution, int thread) {
  return execution.listeners.empty() ? nullptr : execution.listeners[static_cast<std::size_t>(thread)];
}

/// The rows of `group` heads, one head after another.
template <class T>
MatrixView<T> heads_from(MatrixView<T> first, std::int64_t group) {
  first.rows *= group;
  return first;
}

/// The tensors of walk (b, h): those of a query head, or of all heads of a group that `walked` has packed.
template <class T>
HeadTensors<T> walk_tensors(const Problem& walked, const Inputs<T>& inputs, Outputs<T>& outputs,
                            std::int64_t b, std::int64_t h) {
  const std::int64_t group = walked.rows_per_query;
  const std::int64_t kv_head = walked.kv_head_of(h);
  HeadTensors<T> head{.v = inputs.v.matrix(b, kv_head),
                      .o = heads_from(outputs.o.matrix(b, h * group), group),
                      .lse = heads_from(outputs.lse.matrix(b, h * group), group)};
  if (inputs.scores_given()) {
    head.scores = heads_from(inputs.scores.matrix(b, h * group), group);
  } else {
    head.q = heads_from(inputs.q.matrix(b, h * group), group);
    head.k = inputs.k.matrix(b, kv_head);
  }
  return head;
}

/// Each walk as it stands, or one query tile of one walk, under the observer's eyes. `walked` is the problem
/// as the walks see it.
template <class T>
void attend_observed(const Problem& walked, const Method& method, Switches switches, const Inputs<T>& inputs,
                     const Execution& execution, Outputs<T>& outputs) {
  const TileGrid grid(walked, method.tiling);
  Range part = grid.every_query_tile();
  if (execution.only) part = {execution.only->query_tile, execution.only->query_tile + 1};
  const Range rows{grid.rows(part.begin).begin, grid.rows(part.end - 1).end};
  Executor<T> executor(walked, method, switches, Executor<T>::Pass::forward, part.size(), true);
  for (std::int64_t b = 0; b < walked.batch; ++b) {
    for (std::int64_t h = 0; h < walked.heads; ++h) {
      if (execution.only && (execution.only->batch != b || execution.only->head != h)) continue;
      execution.observer->begin_head(b, h);
      executor.begin(walk_tensors(walked, inputs, outputs, b, h), part.begin);
      Observed<T> observed(executor, *execution.observer);
      walk_part(walked, method, part, observed);
      executor.complete(rows);
    }
  }
}

/// The walks' parts of one query tile each, side by side.
template <class T>
void attend_in_parts(const Problem& walked, const Method& method, Switches switches, const Inputs<T>& inputs,
                     const Execution& execution, Outputs<T>& outputs) {
  const TileGrid grid(walked, method.tiling);
  const std::int64_t query_tiles = grid.query_tiles();
  const std::int64_t heads = walked.batch * walked.heads;
  const auto work_of = [&](std::int64_t i) {
    return 1 + (facts_of(method.algorithm).tiled ? grid.visited_key_tiles(i) : grid.key_tiles());
  };
  std::int64_t work = 0;
  for (std::int64_t i = 0; i < query_tiles; ++i) work += work_of(i);
  Meter meter(execution, work * heads);
  Executors<T> executors(execution.threads, [&] {
    return std::make_unique<Executor<T>>(walked, method, switches, Executor<T>::Pass::forward, 1);
  });
  run_tasks(execution.threads, heads * query_tiles, [&](int thread) {
    Executor<T>& executor = executors.of(thread);
    return [&, followed = Followed<T>(executor, follower(execution, thread))](std::int64_t task) mutable {
      const std::int64_t head = task / query_tiles;
      // The last query tile sees the most keys: the longest first.
      const std::int64_t i = query_tiles - 1 - task % query_tiles;
      executor.begin(walk_tensors(walked, inputs, outputs, head / walked.heads, head % walked.heads), i);
      walk_part(walked, method, {i, i + 1}, followed);
      executor.complete(grid.rows(i));
      meter.add(work_of(i));
    };
  });
}

/// What the backward passes work on.
template <class T>
struct BackwardPass {
  Algorithm algorithm{};
  const Problem& problem;
  Tiling tiling;
  Switches switches;
  const Inputs<T>& inputs;
  Outputs<T>& outputs;  ///< only read
  const Tensor4<T>& d_o;
  const Execution& execution;
  Gradients<T> gradients;
  Tensor4<T> delta;

  [[nodiscard]] Method method() const { return {.algorithm = algorithm, .tiling = tiling}; }
  [[nodiscard]] HeadTensors<T> head(std::int64_t b, std::int64_t h) {
    HeadTensors<T> one = walk_tensors(problem, inputs, outputs, b, h);
    one.d_o = d_o.matrix(b, h);
    one.dq = gradients.dq.matrix(b, h);
    one.dk = gradients.dk.matrix(b, problem.kv_head_of(h));
    one.dv = gradients.dv.matrix(b, problem.kv_head_of(h));
    one.delta = delta.matrix(b, h);
    return one;
  }
};

/// Standard attention keeps P: the forward kernels make it once more, uncounted. The heads of a group add to
/// the same dK and dV and so are one task.
template <class T>
void standard_backward(BackwardPass<T>& pass) {
  const Problem& problem = pass.problem;
  const TileGrid grid(problem, pass.tiling);
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t groups = problem.batch * problem.kv_heads;
  Executors<T> executors(pass.execution.threads, [&] {
    return std::make_unique<Executor<T>>(problem, pass.method(), pass.switches, Executor<T>::Pass::backward,
                                         grid.query_tiles());
  });
  Meter meter(pass.execution, groups * group);
  // The forward pass writes O and L, which the caller keeps.
  Outputs<T> again{Tensor4<T>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                   Tensor4<T>(problem.batch, problem.heads, problem.seq, 1)};
  run_tasks(pass.execution.threads, groups, [&](int thread) {
    Executor<T>& executor = executors.of(thread);
    return [&, thread](std::int64_t task) {
      const std::int64_t b = task / problem.kv_heads;
      for (std::int64_t g = 0; g < group; ++g) {
        const std::int64_t h = task % problem.kv_heads * group + g;
        executor.begin(walk_tensors(problem, pass.inputs, again, b, h), 0);
        walk(pass.algorithm, problem, pass.tiling, executor);
        executor.begin(pass.head(b, h), 0);
        Followed<T> followed(executor, follower(pass.execution, thread));
        walk_backward(pass.algorithm, problem, pass.tiling, followed);
        meter.add(1);
      }
    };
  });
}

template <class T>
void flash2_backward(BackwardPass<T>& pass) {
  const Problem& problem = pass.problem;
  const TileGrid grid(problem, pass.tiling);
  const std::int64_t heads = problem.batch * problem.heads;
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t query_tiles = grid.query_tiles();
  const std::int64_t key_tiles = grid.key_tiles();
  Turns query_turns(heads * query_tiles);
  Turns key_turns(problem.batch * problem.kv_heads * key_tiles);
  Executors<T> executors(pass.execution.threads, [&] {
    return std::make_unique<Executor<T>>(problem, pass.method(), pass.switches, Executor<T>::Pass::backward,
                                         1);
  });
  const auto by_query_tile = [&](const auto& work) {
    run_tasks(pass.execution.threads, heads * query_tiles, [&](int thread) {
      Executor<T>& executor = executors.of(thread);
      return [&, thread](std::int64_t task) {
        const std::int64_t head = task / query_tiles;
        const std::int64_t i = task % query_tiles;
        executor.begin(pass.head(head / problem.heads, head % problem.heads), i);
        Followed<T> followed(executor, follower(pass.execution, thread));
        work(executor, followed, i);
      };
    });
  };
  by_query_tile([&](Executor<T>&, Listener& followed, std::int64_t i) {
    walk_backward_part(BackwardKernel::deltas, problem, pass.tiling, {i, i + 1}, followed);
  });
  Meter meter(pass.execution, heads * key_tiles);
  // A key tile waits for the one before it, head by head, so tasks come in that order.
  run_tasks(pass.execution.threads, heads * key_tiles, [&](int thread) {
    Executor<T>& executor = executors.of(thread);
    return [&, thread](std::int64_t task) {
      const std::int64_t head = task / key_tiles;
      const std::int64_t j = task % key_tiles;
      const std::int64_t b = head / problem.heads;
      const std::int64_t h = head % problem.heads;
      HeadTensors<T> tensors = pass.head(b, h);
      tensors.query_turns = &query_turns;
      tensors.first_query_place = head * query_tiles;
      tensors.key_turns = &key_turns;
      tensors.first_key_place = (b * problem.kv_heads + problem.kv_head_of(h)) * key_tiles;
      tensors.turn = h % group;
      executor.begin(tensors, 0);
      Followed<T> followed(executor, follower(pass.execution, thread));
      walk_backward_part(BackwardKernel::gradients, problem, pass.tiling, {j, j + 1}, followed);
      meter.add(1);
    };
  });
  by_query_tile([&](Executor<T>& executor, Listener& followed, std::int64_t i) {
    walk_backward_part(BackwardKernel::conversion, problem, pass.tiling, {i, i + 1}, followed);
    if (problem.storage == problem.accumulation()) executor.convert_query_gradient(grid.rows(i));
  });
}

}  // namespace

template <class T>
Outputs<T> attend(const Problem& problem, const Method& method, Switches switches, const Inputs<T>& inputs,
                  const Execution& execution) {
  Outputs<T> outputs{Tensor4<T>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                     Tensor4<T>(problem.batch, problem.heads, problem.seq, 1)};
  const Problem walked = method.algorithm == Algorithm::split_kv ? packed_heads(problem) : problem;
  if (execution.observer != nullptr) {
    attend_observed(walked, method, switches, inputs, execution, outputs);
  } else {
    attend_in_parts(walked, method, switches, inputs, execution, outputs);
  }
  return outputs;
}

template <class T>
Gradients<T> attend_backward(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                             const Inputs<T>& inputs, const Outputs<T>& outputs, const Tensor4<T>& d_o,
                             const Execution& execution) {
  assert(executes_backward(algorithm) && !inputs.scores_given());
  BackwardPass<T> pass{
      .algorithm = algorithm,
      .problem = problem,
      .tiling = tiling,
      .switches = switches,
      .inputs = inputs,
      .outputs = const_cast<Outputs<T>&>(outputs),
      .d_o = d_o,
      .execution = execution,
      .gradients = {Tensor4<T>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                    Tensor4<T>(problem.batch, problem.kv_heads, problem.kv_seq, problem.head_dim),
                    Tensor4<T>(problem.batch, problem.kv_heads, problem.kv_seq, problem.head_dim)},
      .delta = Tensor4<T>(problem.batch, problem.heads, problem.seq, 1)};
  if (algorithm == Algorithm::standard) {
    standard_backward(pass);
  } else {
    flash2_backward(pass);
  }
  // Heads of a group were summed in T; what is stored is rounded.
  round_to_storage(problem, pass.gradients.dk);
  round_to_storage(problem, pass.gradients.dv);
  return std::move(pass.gradients);
}

template <class T>
void round_to_storage(const Problem& problem, Tensor4<T>& tensor) {
  if (!is_narrower<T>(problem.storage)) return;
  std::vector<T>& data = tensor.data();
  tile_kernels<T>().round(data.data(), static_cast<std::int64_t>(data.size()), data.data(), problem.storage);
}

const char* vector_target() { return tile_kernels<float>().target; }

template Outputs<float> attend(const Problem&, const Method&, Switches, const Inputs<float>&,
                               const Execution&);
template Outputs<double> attend(const Problem&, const Method&, Switches, const Inputs<double>&,
                                const Execution&);
template Gradients<float> attend_backward(Algorithm, const Problem&, Tiling, Switches, const Inputs<float>&,
                                          const Outputs<float>&, const Tensor4<float>&, const Execution&);
template Gradients<double> attend_backward(Algorithm, const Problem&, Tiling, Switches, const Inputs<double>&,
                                           const Outputs<double>&, const Tensor4<double>&, const Execution&);
template void round_to_storage(const Problem&, Tensor4<float>&);
template void round_to_storage(const Problem&, Tensor4<double>&);

}  // namespace flashsim
