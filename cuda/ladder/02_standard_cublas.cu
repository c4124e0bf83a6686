// idea: standard attention as a framework runs it at its best: cuBLAS for both products, softmax between.
// what changed: tensor cores, and tiles of cuBLAS's choice; a group's heads are one product of G·N rows.
// HBM traffic: as 01, and V once more, to see that it is finite; cuBLAS reads operands again as it likes.
// on-chip memory: cuBLAS's own; for softmax a row of S.
// parallelism: cuBLAS's own; for softmax a block a row.
// limits: S must fit memory. cuBLAS multiplies masked keys too: where V isn't finite, 01's product follows.
#include <algorithm>
#include <cstddef>

#include "cuda/ladder/resources.hpp"
#include "cuda/ladder/rung.hpp"
#include "cuda/ladder/standard_output.hpp"
#include "cuda/ladder/standard_softmax.hpp"
#include "cuda/library/cublas.hpp"
#include "cuda/pieces/finite_check.cuh"

namespace flashsim {
namespace {

/// Behind cuBLAS's workspace: room for a flag, and for what follows to stay aligned.
constexpr std::size_t kFlagBytes = 256;

cudaDataType type_of(NumberType storage) {
  return storage == NumberType::fp16 ? CUDA_R_16F : storage == NumberType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// Row-major matrices are transposes to cuBLAS, so Sᵀ = K Qᵀ and Oᵀ = Vᵀ Pᵀ, one product for every key/value
/// head: the rows of its group's query heads lie one after the other.
CublasProduct product_of(const Problem& problem) {
  const cudaDataType type = type_of(problem.storage);
  return {.n = problem.heads / problem.kv_heads * problem.seq,
          .batch = problem.batch * problem.kv_heads,
          .type = type,
          .type_c = type,
          .compute = CUBLAS_COMPUTE_32F};
}

CublasProduct scores_of(const RungArguments& args, void* s) {
  const Problem& problem = args.task.problem;
  CublasProduct product = product_of(problem);
  const std::int64_t d = problem.head_dim;
  product.m = problem.kv_seq;
  product.k = d;
  product.transpose_a = true;
  product.a = {.data = args.k, .leading = d, .stride = problem.kv_seq * d};
  product.b = {.data = args.q, .leading = d, .stride = product.n * d};
  product.c = {.data = s, .leading = problem.kv_seq, .stride = product.n * problem.kv_seq};
  product.alpha = problem.score_scale();
  return product;
}

CublasProduct output_of(const RungArguments& args, const void* p) {
  const Problem& problem = args.task.problem;
  CublasProduct product = product_of(problem);
  const std::int64_t d = problem.head_dim;
  product.m = d;
  product.k = problem.kv_seq;
  product.a = {.data = args.v, .leading = d, .stride = problem.kv_seq * d};
  product.b = {.data = p, .leading = problem.kv_seq, .stride = product.n * problem.kv_seq};
  product.c = {.data = args.o, .leading = d, .stride = product.n * d};
  return product;
}

/// `found` becomes whether V holds a NaN or an infinity.
void launch_check(const RungArguments& args, int* found) {
  const Problem& problem = args.task.problem;
  cuda_check(cudaMemsetAsync(found, 0, sizeof *found, args.stream), "cudaMemsetAsync");
  with_storage(problem.storage, [&]<class T>(T) {
    constexpr int kWidth = kVectorWidth<T>;
    constexpr std::int64_t kMostBlocks = 4096;
    const T* v = static_cast<const T*>(args.v);
    const std::int64_t count = problem.batch * problem.kv_heads * problem.kv_seq * problem.head_dim;
    const bool vectors = in_vectors<T>(v, count);
    const std::int64_t blocks = (count / (vectors ? kWidth : 1) + kCheckThreads - 1) / kCheckThreads;
    const LaunchPlan<const T*, std::int64_t, int*> plan{
        .name = "check",
        .kernel = vectors ? find_not_finite<T, kWidth> : find_not_finite<T, 1>,
        .blocks = std::min(blocks, kMostBlocks),
        .threads = kCheckThreads};
    launch(plan, args.stream, v, count, found);
  });
}

std::size_t workspace(const DeviceTask&) { return Cublas::workspace_bytes() + kFlagBytes; }

void launch_standard_cublas(const RungArguments& args) {
  const Problem& problem = args.task.problem;
  Cublas& cublas = Cublas::of_current_device();
  const auto entries = problem.batch * problem.heads * problem.seq * problem.kv_seq;
  const PoolArray<std::byte> s(args.pool, static_cast<std::size_t>(entries * size_of(problem.storage)),
                               args.stream);
  const PoolArray<std::byte> work(args.pool, workspace(args.task), args.stream);
  int* v_is_not_finite = reinterpret_cast<int*>(work.data() + Cublas::workspace_bytes());

  cublas.use(args.stream, work.data(), Cublas::workspace_bytes());
  launch_check(args, v_is_not_finite);
  cublas.multiply(scores_of(args, s.data()));
  launch_softmax(args, s.data());  // P overwrites S
  cublas.multiply(output_of(args, s.data()));
  launch_output(args, s.data(), v_is_not_finite);  // once more, and right, where it must be
}

std::vector<KernelResources> resources(const DeviceTask& task) { return {softmax_resources(task)}; }

}  // namespace

const Rung kStandardCublasRung{.kernel = Kernel::standard_cublas,
                               .launch = launch_standard_cublas,
                               .resources = resources,
                               .workspace = workspace};

}  // namespace flashsim
