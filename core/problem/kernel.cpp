#include "core/problem/kernel.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

bool takes_type(const KernelFacts& facts, NumberType type) {
  return std::count(facts.storage.begin(), facts.storage.end(), type) > 0;
}

Outcome problem_of_kernel(const KernelFacts& facts, const Problem& problem, const Switches& switches) {
  if (!takes_type(facts, problem.storage)) {
    std::vector<std::string_view> types;
    for (const NumberType type : facts.storage) types.push_back(name_of(type));
    return Error{
        fmt::format("{} takes {}, not {}", facts.name, fmt::join(types, ", "), name_of(problem.storage)), ""};
  }
  if (problem.head_dim > facts.largest_head_dim) {
    return Error{fmt::format("{} takes head dimensions up to {}, not {}", facts.name, facts.largest_head_dim,
                             problem.head_dim),
                 ""};
  }
  if (switches.accumulate_in_storage) {
    return Error{fmt::format("{} sums in float32, so --accumulate storage means nothing for it", facts.name),
                 ""};
  }
  if (switches.broken() && !facts.breaks) {
    return Error{fmt::format("{} isn't built with a part switched off or broken", facts.name), ""};
  }
  if (switches.fault != Fault::none && (!switches.subtract_max || !switches.rescale)) {
    return Error{
        fmt::format("{} is built broken in one way at a time, not with --fault {} and {}", facts.name,
                    name_of(switches.fault), switches.rescale ? "--no-subtract-max" : "--no-rescale"),
        ""};
  }
  return check_switches(switches, facts.algorithm);
}

/// What a kernel on the tensor units works on: its tiles, what of them is a warp's, and the blocks that an SM
/// holds where registers are laid out for so many.
struct FragmentPlan {
  Tiling tiling;
  Fragments fragments;
  std::optional<std::int64_t> blocks_per_sm;
};

/// Warps that have the same rows share the keys of a tile (cuda/ladder/05_flash_split_kv_shapes.cuh).
FragmentPlan split_kv_plan(const Problem& problem) {
  const std::int64_t d = problem.head_dim;
  Tiling tiling = packed_tiling(problem);
  if (d > 128) tiling.key_rows = 64;
  const std::int64_t warps = tiling.query_rows == 16 ? 4 : 8;
  const std::int64_t warp_rows = d <= 128 && tiling.query_rows >= 64 ? 32 : 16;
  const std::int64_t key_warps = warps / (tiling.query_rows / warp_rows);
  const bool two_fit = tiling.query_rows == 16 ? d <= 128 : tiling.query_rows == 32 && d <= 64;
  return {tiling,
          {.warp_rows = warp_rows, .warp_keys = tiling.key_rows / key_warps, .warps = warps},
          two_fit ? 2 : 1};
}

FragmentPlan plan_of(Kernel kernel, const Problem& problem) {
  const std::int64_t d = problem.head_dim;
  if (kernel == Kernel::flash_split_kv) return split_kv_plan(problem);
  if (kernel == Kernel::flash_backward) {
    // dK, dV, S and dP fill the registers (cuda/ladder/06_flash_backward_gradients.cu).
    if (d <= 64) return {{64, 128}, {.warp_rows = 64, .warp_keys = 32}, 2};
    return {{64, 128}, {.warp_rows = 64, .warp_keys = 16, .warps = 8}, 1};
  }
  // O and S fill the registers (cuda/ladder/04_flash_tensor_kernels.hpp).
  if (d <= 64) return {{128, 128}, {.warp_rows = 32}, 2};
  if (d <= 128) return {{128, 64}, {.warp_rows = 32}, 2};
  return {{64, 64}, {.warp_rows = 16}, 2};
}

void take_plan(const FragmentPlan& plan, Habits& habits) {
  habits.fragments = plan.fragments;
  habits.blocks_per_sm = plan.blocks_per_sm;
}

}  // namespace

Result<Kernel> kernel_named(std::string_view name) {
  std::vector<std::string> known;
  for (const KernelFacts& facts : kKernels) {
    if (name == facts.name || name == facts.name.substr(3) || name == facts.name.substr(0, 2))
      return facts.kernel;
    known.emplace_back(facts.name);
  }
  return unknown_name("kernel", name, known);
}

Outcome check_kernel(Kernel kernel, const Problem& problem, const Switches& switches) {
  auto error = problem_of_kernel(facts_of(kernel), problem, switches);
  if (!error) return std::nullopt;
  std::vector<std::string_view> others;
  for (const KernelFacts& facts : kKernels) {
    const bool same_pass = facts.pass == facts_of(kernel).pass;
    if (same_pass && !problem_of_kernel(facts, problem, switches)) others.push_back(facts.name);
  }
  error->hint = others.empty() ? "no kernel takes it; run it on the CPU"
                               : fmt::format("taken by {}", fmt::join(others, ", "));
  return error;
}

Method method_of(Kernel kernel, const Problem& problem) {
  const KernelFacts& facts = facts_of(kernel);
  Method method{.algorithm = facts.algorithm, .pass = facts.pass};
  switch (kernel) {
    case Kernel::standard: method.tiling = {.query_rows = 64, .key_rows = 64}; break;
    case Kernel::standard_cublas: method.tiling = kProductTiles; break;  // cuBLAS chooses its own
    case Kernel::flash_fp32:
      // A warp keeps 16 rows of O in registers; what is left of a block's shared memory sets the keys.
      method.tiling = problem.head_dim <= 128 ? Tiling{128, 64} : Tiling{64, 32};
      break;
    case Kernel::flash_backward:
      method.packs_groups = true;
      method.sums_in_l2 = true;
      [[fallthrough]];
    case Kernel::flash_tensor:
    case Kernel::flash_split_kv: method.tiling = plan_of(kernel, problem).tiling; break;
  }
  return method;
}

Habits habits_of(Kernel kernel, const Problem& problem) {
  Habits habits{.overlap = Overlap::serial};
  switch (kernel) {
    case Kernel::standard:
      habits.lanes = {.rows = 4, .keys = 4, .columns = (problem.head_dim + 15) / 16};
      break;
    case Kernel::standard_cublas: break;
    case Kernel::flash_tensor:
      take_plan(plan_of(kernel, problem), habits);
      if (problem.causal) habits.launch_order = LaunchOrder::longest_of_all_first;
      break;
    case Kernel::flash_split_kv: take_plan(plan_of(kernel, problem), habits); break;
    case Kernel::flash_backward:
      take_plan(plan_of(kernel, problem), habits);
      // The first keys are seen by most queries.
      if (problem.causal) habits.launch_order = LaunchOrder::heads_first;
      habits.query_gradient_order = LaunchOrder::longest_first;
      break;
    case Kernel::flash_fp32:
      habits.launch_order = LaunchOrder::longest_first;
      habits.blocks_per_sm = 1;  // registers or shared memory leave no room for two
      // Rows are padded to 32, 64, 128 or 256 columns, of which eight lanes have a part each.
      habits.lanes = {.rows = 4,
                      .keys = method_of(kernel, problem).tiling.key_rows / 8,
                      .columns = problem.head_dim <= 32    ? 4
                                 : problem.head_dim <= 64  ? 8
                                 : problem.head_dim <= 128 ? 16
                                                           : 32};
      break;
  }
  return habits;
}

}  // namespace flashsim
