// The launches of 05. The kernels are in 05_flash_split_kv.cuh and 05_flash_split_kv_combine.cu.
#include "core/problem/mask.hpp"
#include "cuda/ladder/05_flash_split_kv_kernels.hpp"
#include "cuda/ladder/resources.hpp"
#include "cuda/pieces/storage.cuh"

namespace flashsim {
namespace {

using split_kv::Arguments;
using split_kv::CombineArguments;

split_kv::AttentionPlan attention_plan(const DeviceTask& task) {
  switch (task.problem.storage) {
    case NumberType::fp16: return split_kv::attention_fp16(task);
    case NumberType::bf16: return split_kv::attention_bf16(task);
    default: throw CudaError(cudaErrorInvalidValue, "05_flash_split_kv takes fp16 and bf16");
  }
}

bool in_pieces(const RungArguments& args) {
  const std::int64_t depth = args.task.problem.head_dim;
  bool all = true;
  for (const void* each : {args.q, args.k, args.v, static_cast<const void*>(args.o)}) {
    all = all && in_vectors<__half>(each, depth);
  }
  return all;
}

Arguments attention_arguments(const RungArguments& args, std::int64_t blocks, float* o_part,
                              float* lse_part) {
  const Problem& problem = args.task.problem;
  const Problem packed = packed_heads(problem);
  const std::int64_t splits = args.task.method.splits;
  const Tiling tiling = args.task.method.tiling;
  const std::int64_t key_tiles = (packed.kv_seq - 1) / tiling.key_rows + 1;
  return {.q = args.q,
          .k = args.k,
          .v = args.v,
          .o = args.o,
          .o_part = o_part,
          .lse = args.lse,
          .lse_part = lse_part,
          .seq = problem.seq,
          .sight = {.keys = problem.kv_seq,
                    .first_position = position_of_first_query(problem),
                    .causal = problem.causal},
          .part_keys = ((key_tiles - 1) / splits + 1) * tiling.key_rows,
          .group = static_cast<unsigned>(packed.rows_per_query),
          .splits = static_cast<unsigned>(splits),
          .query_tiles = static_cast<unsigned>(blocks / (packed.batch * packed.heads) / splits),
          .key_rows = static_cast<int>(tiling.key_rows),
          .head_dim = static_cast<int>(problem.head_dim),
          .in_pieces = in_pieces(args),
          .scale = score_scale_of(problem)};
}

CombineArguments combine_arguments(const RungArguments& args, const float* o_part, const float* lse_part) {
  const Problem packed = packed_heads(args.task.problem);
  const std::int64_t splits = args.task.method.splits;
  return {.o_part = o_part,
          .lse_part = lse_part,
          .o = args.o,
          .lse = args.lse,
          .seq = args.task.problem.seq,
          .group = static_cast<unsigned>(packed.rows_per_query),
          .blocks_a_head = static_cast<unsigned>(split_kv::blocks_a_head(packed.seq, splits)),
          .splits = static_cast<int>(splits),
          .warps_a_row = split_kv::warps_a_row(splits),
          .head_dim = static_cast<int>(packed.head_dim)};
}

void launch_as(const split_kv::AttentionPlan& attention, const RungArguments& args) {
  const Problem packed = packed_heads(args.task.problem);
  const std::int64_t splits = args.task.method.splits;
  if (splits == 1) {
    launch(attention, args.stream, attention_arguments(args, attention.blocks, nullptr, nullptr));
    return;
  }
  const auto rows = static_cast<std::size_t>(packed.batch * packed.heads * packed.seq * splits);
  const PoolArray<float> o_part(args.pool, rows * static_cast<std::size_t>(packed.head_dim), args.stream);
  const PoolArray<float> lse_part(args.pool, rows, args.stream);
  launch(attention, args.stream, attention_arguments(args, attention.blocks, o_part.data(), lse_part.data()));
  launch(split_kv::combine_kernel(args.task), args.stream,
         combine_arguments(args, o_part.data(), lse_part.data()));
}

void launch_split_kv(const RungArguments& args) { launch_as(attention_plan(args.task), args); }

std::vector<KernelResources> resources(const DeviceTask& task) {
  std::vector<KernelResources> kernels{resources_of(attention_plan(task))};
  if (task.method.splits > 1) kernels.push_back(resources_of(split_kv::combine_kernel(task)));
  return kernels;
}

}  // namespace

const Rung kFlashSplitKvRung{
    .kernel = Kernel::flash_split_kv, .launch = launch_split_kv, .resources = resources};

}  // namespace flashsim
