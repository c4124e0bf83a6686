#include "core/study/device_execution.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// A tensor to fill, and the device's numbers for it.
struct Given {
  const char* name;
  Tensor4<float>& tensor;
  std::vector<float>& numbers;
};

/// Moves the numbers into their tensors. Errors: too few or too many of one.
Outcome take(const std::vector<Given>& all) {
  for (const Given& each : all) {
    const std::size_t wanted = each.tensor.data().size();
    if (each.numbers.size() != wanted) {
      return Error{
          fmt::format("the device gave {} numbers of {}, not {}", each.numbers.size(), each.name, wanted),
          ""};
    }
    each.tensor.data() = std::move(each.numbers);
  }
  return std::nullopt;
}

}  // namespace

DeviceInputs device_inputs_of(const Inputs<float>& inputs, const Tensor4<float>& d_o) {
  return {.q = inputs.q.data(), .k = inputs.k.data(), .v = inputs.v.data(), .d_o = d_o.data()};
}

Result<DeviceExecution> execute_on(const DeviceBackend& device, const DeviceTask& task,
                                   const Inputs<float>& inputs, const Tensor4<float>& d_o) {
  auto given = device.execute(task, device_inputs_of(inputs, d_o));
  if (!given) return given.error();
  const Problem& p = task.problem;
  DeviceExecution execution{.outputs = {.o = Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim),
                                        .lse = Tensor4<float>(p.batch, p.heads, p.seq, 1)},
                            .gradients = std::nullopt,
                            .kernels = std::move(given->kernels),
                            .seconds = given->seconds};
  std::vector<Given> all{{"O", execution.outputs.o, given->o}, {"L", execution.outputs.lse, given->lse}};
  if (facts_of(task.kernel).pass == Pass::backward) {
    execution.gradients = Gradients<float>{.dq = Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim),
                                           .dk = Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                                           .dv = Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)};
    all.push_back({"dQ", execution.gradients->dq, given->d_q});
    all.push_back({"dK", execution.gradients->dk, given->d_k});
    all.push_back({"dV", execution.gradients->dv, given->d_v});
  }
  if (auto error = take(all)) return *error;
  return execution;
}

}  // namespace flashsim
