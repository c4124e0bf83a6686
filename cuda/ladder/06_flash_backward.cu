// The launch of 06: deltas, gradients, conversion; deterministic: deltas, key_value_gradients,
// query_gradient. Where inputs hold NaN or infinities, the careful builds.
#include <optional>

#include "core/problem/mask.hpp"
#include "cuda/ladder/06_flash_backward_kernels.hpp"
#include "cuda/ladder/resources.hpp"
#include "cuda/ladder/rung.hpp"

namespace flashsim {
namespace {

using namespace flash_backward;

template <class T>
Arguments<T> arguments_of(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  bool in_pieces = true;
  for (const void* tensor : {args.q, args.k, args.v, static_cast<const void*>(args.o), args.d_o,
                             static_cast<const void*>(args.d_q), static_cast<const void*>(args.d_k),
                             static_cast<const void*>(args.d_v)}) {
    in_pieces = in_pieces && in_vectors<T>(tensor, problem.head_dim);
  }
  const std::int64_t group = problem.heads / problem.kv_heads;
  return {.q = static_cast<const T*>(args.q),
          .k = static_cast<const T*>(args.k),
          .v = static_cast<const T*>(args.v),
          .o = static_cast<const T*>(args.o),
          .d_o = static_cast<const T*>(args.d_o),
          .lse = args.lse,
          .deltas = nullptr,
          .query_sum = nullptr,
          .d_q = static_cast<T*>(args.d_q),
          .d_k = static_cast<T*>(args.d_k),
          .d_v = static_cast<T*>(args.d_v),
          .seq = problem.seq,
          .kv_seq = problem.kv_seq,
          .rows = group * problem.seq,
          .tiles = 0,
          .sum_tiles = 0,
          .group = static_cast<unsigned>(group),
          .columns = static_cast<int>(problem.head_dim),
          .in_pieces = in_pieces,
          .causal = problem.causal,
          .first_position = position_of_first_query(problem),
          .scale = static_cast<float>(problem.score_scale())};
}

/// A head's tiles are its part of the blocks.
template <class T>
void launch_on(const Plan<T>& plan, Arguments<T> arguments, std::int64_t heads, cudaStream_t stream) {
  arguments.tiles = static_cast<unsigned>(plan.blocks / heads);
  launch(plan, stream, arguments);
}

template <class T>
void launch_all(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  const bool sums = !args.task.method.deterministic;
  const bool careful = !args.finite;
  const std::int64_t heads = problem.batch * problem.heads;
  const std::int64_t kv_heads = problem.batch * problem.kv_heads;
  const auto rows = static_cast<std::size_t>(heads * problem.seq);
  const PoolArray<float> deltas(args.pool, rows, args.stream);
  std::optional<PoolArray<float>> query_sum;
  const std::int64_t sum_tiles = sums ? query_tiles(problem) : 0;
  if (sums) {
    query_sum.emplace(args.pool, static_cast<std::size_t>(sum_tiles * kTileRows * padded_depth(problem)),
                      args.stream);
  }

  Arguments<T> arguments = arguments_of<T>(args);
  arguments.deltas = deltas.data();
  arguments.query_sum = sums ? query_sum->data() : nullptr;
  arguments.sum_tiles = static_cast<unsigned>(sum_tiles);
  launch_on(deltas_plan<T>(problem), arguments, heads, args.stream);
  launch_on(careful ? gradients_plan<T, true>(problem, sums) : gradients_plan<T, false>(problem, sums),
            arguments, kv_heads, args.stream);
  if (sums) {
    launch_on(conversion_plan<T>(problem), arguments, kv_heads, args.stream);
  } else {
    launch_on(careful ? query_gradient_plan<T, true>(problem) : query_gradient_plan<T, false>(problem),
              arguments, kv_heads, args.stream);
  }
}

/// Of the builds for inputs that are finite.
template <class T>
std::vector<KernelResources> resources_in(const DeviceTask& task) {
  const Problem& problem = task.problem;
  const bool sums = !task.method.deterministic;
  return {resources_of(deltas_plan<T>(problem)), resources_of(gradients_plan<T, false>(problem, sums)),
          resources_of(sums ? conversion_plan<T>(problem) : query_gradient_plan<T, false>(problem))};
}

void launch_backward(const RungArguments& args) {
  if (args.task.problem.storage == NumberType::bf16) return launch_all<__nv_bfloat16>(args);
  launch_all<__half>(args);
}

std::vector<KernelResources> resources(const DeviceTask& task) {
  return task.problem.storage == NumberType::bf16 ? resources_in<__nv_bfloat16>(task)
                                                  : resources_in<__half>(task);
}

}  // namespace

const Rung kFlashBackwardRung{
    .kernel = Kernel::flash_backward, .launch = launch_backward, .resources = resources};

}  // namespace flashsim
