// idea: attention as it is written: S = scale · Q Kᵀ, P = softmax(S), O = P V, a plain kernel for each.
// what changed: nothing yet; this is what the next rungs are held against.
// HBM traffic: Q, K, V, O and L once; S written and read, P written and read: 4·N·Nkv elements.
// on-chip memory: tiles of S and of O in registers; slices of operands, or a row of S, in shared memory.
// parallelism: a block for a tile of 64×64 scores; for a row; for 64 rows of O. FMA units, in float32.
// limits: S must fit memory; d ≤ 256; the whole matrix is computed, causal or not; no tensor cores.
#include "cuda/ladder/resources.hpp"
#include "cuda/ladder/rung.hpp"
#include "cuda/ladder/standard_output.hpp"
#include "cuda/ladder/standard_softmax.hpp"
#include "cuda/pieces/scores_product.cuh"

namespace flashsim {
namespace {

template <class T>
using ScoresPlan = LaunchPlan<const T*, const T*, T*, Problem, float, bool, bool, OwnTraffic*>;

template <class T>
ScoresPlan<T> scores_plan(const Problem& problem, bool counts) {
  const auto tiles = [](std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; };
  return {.name = "scores",
          .kernel = counts ? scores_product<T, true> : scores_product<T, false>,
          .blocks = problem.batch * problem.heads * tiles(problem.seq) * tiles(problem.kv_seq),
          .threads = kProductThreads};
}

template <class T>
void launch_scores(const RungArguments& args, T* s) {
  const Problem& problem = args.task.problem;
  const T* q = static_cast<const T*>(args.q);
  const T* k = static_cast<const T*>(args.k);
  const bool vectors = in_vectors<T>(q, problem.head_dim) && in_vectors<T>(k, problem.head_dim);
  launch(scores_plan<T>(problem, args.traffic != nullptr), args.stream, q, k, s, problem,
         static_cast<float>(problem.score_scale()), vectors, in_fours<T>(s, problem.kv_seq), args.traffic);
}

void launch_standard(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  with_storage(problem.storage, [&]<class T>(T) {
    const auto entries =
        static_cast<std::size_t>(problem.batch * problem.heads * problem.seq * problem.kv_seq);
    const PoolArray<T> s(args.pool, entries, args.stream);
    launch_scores(args, s.data());
    launch_softmax(args, s.data());  // P overwrites S
    launch_output(args, s.data());
  });
}

std::vector<KernelResources> resources(const DeviceTask& task) {
  return {with_storage(task.problem.storage,
                       [&]<class T>(T) { return resources_of(scores_plan<T>(task.problem, false)); }),
          softmax_resources(task), output_resources(task)};
}

}  // namespace

const Rung kStandardRung{.kernel = Kernel::standard, .launch = launch_standard, .resources = resources};

}  // namespace flashsim
