// The launch of 03. The kernel itself is in 03_flash_fp32.cuh.
#include "core/problem/mask.hpp"
#include "cuda/ladder/03_flash_fp32_kernels.hpp"
#include "cuda/ladder/resources.hpp"

namespace flashsim {
namespace {

using flash_fp32::Arguments;
using flash_fp32::Plan;

Plan plan_of(const DeviceTask& task, bool counts) {
  return task.switches.broken() ? flash_fp32::broken_kernel(task.problem, task.switches)
                                : flash_fp32::right_kernel(task.problem, counts);
}

void launch_flash(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  const Plan plan = plan_of(args.task, args.traffic != nullptr);
  const Arguments arguments{.q = static_cast<const float*>(args.q),
                            .k = static_cast<const float*>(args.k),
                            .v = static_cast<const float*>(args.v),
                            .o = static_cast<float*>(args.o),
                            .lse = args.lse,
                            .seq = problem.seq,
                            .kv_seq = problem.kv_seq,
                            .heads = problem.heads,
                            .kv_heads = problem.kv_heads,
                            .head_dim = problem.head_dim,
                            .query_tiles = plan.blocks / (problem.batch * problem.heads),
                            .first_position = position_of_first_query(problem),
                            .causal = problem.causal,
                            .scale = static_cast<float>(problem.score_scale()),
                            .traffic = args.traffic};
  launch(plan, args.stream, arguments);
}

std::vector<KernelResources> resources(const DeviceTask& task) {
  return {resources_of(plan_of(task, false))};
}

}  // namespace

const Rung kFlashFp32Rung{.kernel = Kernel::flash_fp32, .launch = launch_flash, .resources = resources};

}  // namespace flashsim
