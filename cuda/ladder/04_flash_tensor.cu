// The launch of 04. The kernel itself is in 04_flash_tensor.cuh, its tiles in 04_flash_tensor_kernels.hpp.
#include <cmath>

#include "core/problem/mask.hpp"
#include "cuda/ladder/04_flash_tensor_kernels.hpp"
#include "cuda/ladder/resources.hpp"

namespace flashsim {
namespace {

using flash_tensor::Arguments;
using flash_tensor::Plan;

Plan plan_of(const DeviceTask& task) {
  if (!task.switches.broken()) return flash_tensor::right_kernel(task.problem);
  return task.problem.storage == NumberType::fp16
             ? flash_tensor::broken_kernel<__half>(task.problem, task.switches)
             : flash_tensor::broken_kernel<__nv_bfloat16>(task.problem, task.switches);
}

void launch_flash(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  const Plan plan = plan_of(args.task);
  const Arguments arguments{
      .q = args.q,
      .k = args.k,
      .v = args.v,
      .o = args.o,
      .lse = args.lse,
      .seq = problem.seq,
      .kv_seq = problem.kv_seq,
      .heads = static_cast<unsigned>(problem.heads),
      .kv_heads = static_cast<unsigned>(problem.kv_heads),
      .query_tiles = static_cast<unsigned>(plan.blocks / (problem.batch * problem.heads)),
      .first_position = position_of_first_query(problem),
      .head_dim = static_cast<int>(problem.head_dim),
      .causal = problem.causal,
      .in_pieces = problem.head_dim % kPieceElements == 0,
      .scale = score_scale_of(problem)};
  launch(plan, args.stream, arguments);
}

std::vector<KernelResources> resources(const DeviceTask& task) { return {resources_of(plan_of(task))}; }

}  // namespace

const Rung kFlashTensorRung{.kernel = Kernel::flash_tensor, .launch = launch_flash, .resources = resources};

}  // namespace flashsim
