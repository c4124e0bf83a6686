#include "core/study/device_execution.hpp"

#include <utility>

#include <fmt/format.h>

namespace flashsim {

Result<DeviceExecution> execute_on(const DeviceBackend& device, const DeviceTask& task,
                                   const Inputs<float>& inputs) {
  auto given = device.execute(task, {.q = inputs.q.data(), .k = inputs.k.data(), .v = inputs.v.data()});
  if (!given) return given.error();
  const Problem& p = task.problem;
  Outputs<float> outputs{.o = Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim),
                         .lse = Tensor4<float>(p.batch, p.heads, p.seq, 1)};
  if (given->o.size() != outputs.o.data().size() || given->lse.size() != outputs.lse.data().size()) {
    return Error{fmt::format("the device gave {} numbers of O and {} of L, not {} and {}", given->o.size(),
                             given->lse.size(), outputs.o.data().size(), outputs.lse.data().size()),
                 ""};
  }
  outputs.o.data() = std::move(given->o);
  outputs.lse.data() = std::move(given->lse);
  return DeviceExecution{
      .outputs = std::move(outputs), .kernels = std::move(given->kernels), .seconds = given->seconds};
}

}  // namespace flashsim
