#include "cuda/ladder/standard_output.hpp"

#include "cuda/ladder/resources.hpp"
#include "cuda/pieces/output_product.cuh"

namespace flashsim {
namespace {

template <class T>
using OutputPlan = LaunchPlan<const T*, const T*, T*, Problem, bool, bool, bool, const int*, OwnTraffic*>;

template <class T, bool kCounts>
auto kernel_for(std::int64_t head_dim) -> decltype(OutputPlan<T>::kernel) {
  if (head_dim <= kGroupColumns) return output_product<T, 1, kCounts>;
  if (head_dim <= 2 * kGroupColumns) return output_product<T, 2, kCounts>;
  return output_product<T, 4, kCounts>;
}

template <class T>
OutputPlan<T> plan_of(const Problem& problem, bool counts) {
  return {.name = "output",
          .kernel = counts ? kernel_for<T, true>(problem.head_dim) : kernel_for<T, false>(problem.head_dim),
          .blocks = problem.batch * problem.heads * ((problem.seq + kTileRows - 1) / kTileRows),
          .threads = kProductThreads};
}

}  // namespace

void launch_output(const RungArguments& args, const void* p, const int* wanted) {
  const Problem& problem = args.task.problem;
  with_storage(problem.storage, [&]<class T>(T) {
    launch(plan_of<T>(problem, args.traffic != nullptr), args.stream, static_cast<const T*>(p),
           static_cast<const T*>(args.v), static_cast<T*>(args.o), problem, in_vectors<T>(p, problem.kv_seq),
           in_vectors<T>(args.v, problem.head_dim), in_fours<T>(args.o, problem.head_dim), wanted,
           args.traffic);
  });
}

KernelResources output_resources(const DeviceTask& task) {
  return with_storage(task.problem.storage,
                      [&]<class T>(T) { return resources_of(plan_of<T>(task.problem, false)); });
}

}  // namespace flashsim
