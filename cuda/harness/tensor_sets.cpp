#include "cuda/harness/tensor_sets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "cuda/check.hpp"
#include "cuda/harness/harness.hpp"
#include "cuda/ladder/ladder.hpp"

namespace flashsim {
namespace {

std::int64_t query_rows(const Problem& p) { return p.batch * p.heads * p.seq; }
std::int64_t query_elements(const Problem& p) { return query_rows(p) * p.head_dim; }
std::int64_t key_elements(const Problem& p) { return p.batch * p.kv_heads * p.kv_seq * p.head_dim; }

bool all_finite(const DeviceInputs& inputs) {
  const std::array tensors{inputs.q, inputs.k, inputs.v, inputs.d_o};
  return std::all_of(tensors.begin(), tensors.end(), [](std::span<const float> tensor) {
    return std::all_of(tensor.begin(), tensor.end(), [](float each) { return std::isfinite(each); });
  });
}

/// The arguments of both passes. O and L are what a forward kernel makes and a backward kernel reads.
RungArguments arguments_of(const DeviceTask& task, const InputSet& in, const ResultTensors& result,
                           MemoryPool& pool, cudaStream_t stream) {
  return {.task = task,
          .q = in.q.data(),
          .k = in.k.data(),
          .v = in.v.data(),
          .o = result.o.data(),
          .lse = static_cast<float*>(result.lse.data()),
          .pool = pool,
          .stream = stream};
}

void launch_rung(Kernel kernel, const RungArguments& arguments) {
  rung_of(kernel).launch(arguments);
  cuda_check(cudaGetLastError(), "kernel launch");
}

/// O and L of the forward kernel, with all that it takes from the pool of the inputs.
void save_for_backward(DeviceContext& place, const DeviceTask& task, const InputSet& in) {
  const DeviceTask forward{.kernel = kSavesForBackward,
                           .problem = task.problem,
                           .switches = {},
                           .method = method_of(kSavesForBackward, task.problem)};
  launch_rung(forward.kernel, arguments_of(forward, in, *in.saved, place.inputs(), place.stream()));
  place.wait();
}

void download_to(std::vector<float>& to, const DeviceTensor& from, std::int64_t count, cudaStream_t stream) {
  to.resize(static_cast<std::size_t>(count));
  from.download(to, stream);
}

}  // namespace

ResultTensors::ResultTensors(MemoryPool& pool, const Problem& problem, cudaStream_t stream)
    : o(pool, problem.storage, query_elements(problem), stream),
      lse(pool, NumberType::fp32, query_rows(problem), stream) {}

void ResultTensors::poison(cudaStream_t stream) {
  o.poison(stream);
  lse.poison(stream);
}

GradientTensors::GradientTensors(MemoryPool& pool, const Problem& problem, cudaStream_t stream)
    : d_q(pool, problem.storage, query_elements(problem), stream),
      d_k(pool, problem.storage, key_elements(problem), stream),
      d_v(pool, problem.storage, key_elements(problem), stream) {}

void GradientTensors::poison(cudaStream_t stream) {
  for (DeviceTensor* tensor : {&d_q, &d_k, &d_v}) tensor->poison(stream);
}

InputSet::InputSet(DeviceContext& place, const DeviceTask& task, const DeviceInputs& from)
    : q(place.inputs(), task.problem.storage, query_elements(task.problem), place.stream()),
      k(place.inputs(), task.problem.storage, key_elements(task.problem), place.stream()),
      v(place.inputs(), task.problem.storage, key_elements(task.problem), place.stream()) {
  q.upload(from.q, place.stream());
  k.upload(from.k, place.stream());
  v.upload(from.v, place.stream());
  if (facts_of(task.kernel).pass == Pass::forward) return;
  if (static_cast<std::int64_t>(from.d_o.size()) != query_elements(task.problem)) {
    throw Refusal{{"a kernel of the backward pass was given no dO of its problem's shape", ""}};
  }
  d_o.emplace(place.inputs(), task.problem.storage, query_elements(task.problem), place.stream());
  d_o->upload(from.d_o, place.stream());
  finite = all_finite(from);
  saved.emplace(place.inputs(), task.problem, place.stream());
  saved->poison(place.stream());
  save_for_backward(place, task, *this);
}

OutputSet::OutputSet(DeviceContext& place, const DeviceTask& task) {
  if (facts_of(task.kernel).pass == Pass::forward) {
    made.emplace(place.pool(), task.problem, place.stream());
  } else {
    gradients.emplace(place.pool(), task.problem, place.stream());
  }
}

void OutputSet::poison(cudaStream_t stream) {
  if (made) made->poison(stream);
  if (gradients) gradients->poison(stream);
}

void launch(DeviceContext& place, const DeviceTask& task, const InputSet& in, const OutputSet& out,
            OwnTraffic* traffic) {
  const ResultTensors& result = out.made ? *out.made : *in.saved;
  RungArguments arguments = arguments_of(task, in, result, place.pool(), place.stream());
  arguments.traffic = traffic;
  if (out.gradients) {
    arguments.finite = in.finite;
    arguments.d_o = in.d_o->data();
    arguments.d_q = out.gradients->d_q.data();
    arguments.d_k = out.gradients->d_k.data();
    arguments.d_v = out.gradients->d_v.data();
  }
  launch_rung(task.kernel, arguments);
}

void download(DeviceContext& place, const DeviceTask& task, const InputSet& in, const OutputSet& out,
              DeviceOutputs& outputs) {
  const Problem& problem = task.problem;
  const ResultTensors& result = out.made ? *out.made : *in.saved;
  download_to(outputs.o, result.o, query_elements(problem), place.stream());
  download_to(outputs.lse, result.lse, query_rows(problem), place.stream());
  if (!out.gradients) return;
  download_to(outputs.d_q, out.gradients->d_q, query_elements(problem), place.stream());
  download_to(outputs.d_k, out.gradients->d_k, key_elements(problem), place.stream());
  download_to(outputs.d_v, out.gradients->d_v, key_elements(problem), place.stream());
}

}  // namespace flashsim
