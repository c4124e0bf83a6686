#include "cuda/ladder/standard_softmax.hpp"

#include "cuda/ladder/resources.hpp"
#include "cuda/pieces/row_softmax.cuh"

namespace flashsim {
namespace {

/// Threads for a row of so many loads: few, with eight loads each, so that many blocks, each in another
/// phase, share an SM. A row that has an SM for itself takes all that there are.
int threads_for(std::int64_t loads, std::size_t row_bytes) {
  if (row_bytes > std::size_t{48} * 1024) return kMostSoftmaxThreads;
  constexpr int kLoadsAThread = 8;
  int threads = 2 * kWarpThreads;
  while (threads < 256 && threads * kLoadsAThread < loads) threads *= 2;
  return threads;
}

/// Bytes of a row that a block can keep: its shared memory, less what the reductions take.
std::size_t largest_kept_row() {
  int device = 0;
  int bytes = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  constexpr std::size_t kReductions = 1024;
  return static_cast<std::size_t>(bytes) - kReductions;
}

template <class T>
using SoftmaxPlan = LaunchPlan<T*, float*, Problem, OwnTraffic*>;

template <class T, int kWidth, bool kRowIsKept>
auto kernel_for(const Switches& switches, bool counts) -> decltype(SoftmaxPlan<T>::kernel) {
  if (counts) return row_softmax<T, kWidth, kRowIsKept, true, false, true>;
  if (switches.fault == Fault::finite_mask) {
    return switches.subtract_max ? row_softmax<T, kWidth, kRowIsKept, true, true, false>
                                 : row_softmax<T, kWidth, kRowIsKept, false, true, false>;
  }
  return switches.subtract_max ? row_softmax<T, kWidth, kRowIsKept, true, false, false>
                               : row_softmax<T, kWidth, kRowIsKept, false, false, false>;
}

/// `scores` is where they will lie; memory of a pool, and so aligned, while that isn't known.
template <class T>
SoftmaxPlan<T> plan_of(const DeviceTask& task, const T* scores, bool counts) {
  const Problem& problem = task.problem;
  const std::size_t row_bytes = static_cast<std::size_t>(problem.kv_seq) * sizeof(T);
  const bool kept = row_bytes <= largest_kept_row();
  const bool vectors = in_vectors<T>(scores, problem.kv_seq);
  SoftmaxPlan<T> plan{.name = "softmax",
                      .blocks = problem.batch * problem.heads * problem.seq,
                      .threads = threads_for(problem.kv_seq / (vectors ? kVectorWidth<T> : 1), row_bytes),
                      .dynamic_shared = kept ? row_bytes : 0};
  const Switches& switches = task.switches;
  if (vectors) {
    plan.kernel = kept ? kernel_for<T, kVectorWidth<T>, true>(switches, counts)
                       : kernel_for<T, kVectorWidth<T>, false>(switches, counts);
  } else {
    plan.kernel = kept ? kernel_for<T, 1, true>(switches, counts) : kernel_for<T, 1, false>(switches, counts);
  }
  return plan;
}

}  // namespace

void launch_softmax(const RungArguments& args, void* scores) {
  with_storage(args.task.problem.storage, [&]<class T>(T) {
    T* s = static_cast<T*>(scores);
    launch(plan_of<T>(args.task, s, args.traffic != nullptr), args.stream, s, args.lse, args.task.problem,
           args.traffic);
  });
}

KernelResources softmax_resources(const DeviceTask& task) {
  return with_storage(task.problem.storage, [&]<class T>(T) {
    return resources_of(plan_of<T>(task, static_cast<const T*>(nullptr), false));
  });
}

}  // namespace flashsim
