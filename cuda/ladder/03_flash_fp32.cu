// The launch of 03: which tile for which head dimension, and which kernel for which switches. The kernel
// itself is in 03_flash_fp32.cuh.
#include "cuda/ladder/03_flash_fp32.cuh"

#include "core/problem/mask.hpp"
#include "cuda/check.hpp"
#include "cuda/ladder/03_flash_fp32_kernels.hpp"
#include "cuda/ladder/resources.hpp"

namespace flashsim {
namespace {

using flash_fp32::Choice;

constexpr std::int64_t kMostBlocks = 2147483647;  // of a grid

std::int64_t query_tiles_of(const Problem& problem, const Choice& choice) {
  return (problem.seq + choice.rows - 1) / choice.rows;
}

Choice choice_of(const DeviceTask& task, bool counts) {
  return task.switches.broken() ? flash_fp32::broken_kernel(task.problem, task.switches)
                                : flash_fp32::right_kernel(task.problem, counts);
}

void launch(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  const Choice choice = choice_of(args.task, args.traffic != nullptr);
  const std::int64_t tiles = query_tiles_of(problem, choice);
  const std::int64_t blocks = problem.batch * problem.heads * tiles;
  if (blocks > kMostBlocks)
    throw CudaError(cudaErrorInvalidConfiguration, "a grid of more than 2³¹ − 1 blocks");
  flash_fp32::Arguments arguments{.q = static_cast<const float*>(args.q),
                                  .k = static_cast<const float*>(args.k),
                                  .v = static_cast<const float*>(args.v),
                                  .o = static_cast<float*>(args.o),
                                  .lse = args.lse,
                                  .seq = problem.seq,
                                  .kv_seq = problem.kv_seq,
                                  .heads = problem.heads,
                                  .kv_heads = problem.kv_heads,
                                  .head_dim = problem.head_dim,
                                  .query_tiles = tiles,
                                  .first_position = position_of_first_query(problem),
                                  .causal = problem.causal,
                                  .scale = static_cast<float>(problem.score_scale()),
                                  .traffic = args.traffic};
  cuda_check(
      cudaFuncSetAttribute(choice.function, cudaFuncAttributeMaxDynamicSharedMemorySize, choice.shared_bytes),
      "cudaFuncSetAttribute");
  void* values[] = {&arguments};
  cuda_check(cudaLaunchKernel(choice.function, dim3(static_cast<unsigned>(blocks)),
                              dim3(static_cast<unsigned>(choice.threads)), values,
                              static_cast<std::size_t>(choice.shared_bytes), args.stream),
             "flash");
}

std::vector<KernelResources> resources(const DeviceTask& task) {
  const Choice choice = choice_of(task, false);
  const std::int64_t blocks = task.problem.batch * task.problem.heads * query_tiles_of(task.problem, choice);
  return {resources_of("attention", choice.function, choice.threads,
                       static_cast<std::size_t>(choice.shared_bytes), blocks)};
}

}  // namespace

const Rung kFlashFp32Rung{.kernel = Kernel::flash_fp32, .launch = launch, .resources = resources};

}  // namespace flashsim
