#include "core/study/run_memory.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

constexpr const char* kSmaller = "make the problem smaller: --seq, --kv-seq, --batch, --heads, --head-dim";

/// Elements of the tensors that live through the run.
Count tensor_elements(const RunPlan& plan) {
  const Problem& p = plan.problem;
  const Count query_side = Count(p.batch) * p.heads * p.seq * p.head_dim;
  const Count key_side = Count(p.batch) * p.kv_heads * p.kv_seq * p.head_dim;
  const Count statistics = Count(p.batch) * p.heads * p.seq;
  Count elements = Count(2) * query_side + Count(2) * key_side + statistics;
  if (plan.backward) elements += Count(2) * query_side + Count(2) * key_side + statistics;
  return elements;
}

/// What a thread of memory-efficient keeps: a chunk of S and the parts of a query chunk as if in HBM, and the
/// tiles that its kernels work on.
Count chunk_elements(const RunPlan& plan) {
  const Problem& p = plan.problem;
  const Count rows = std::min(plan.tiling.query_rows, p.seq);
  const Count keys = std::min(plan.tiling.key_rows, p.kv_seq);
  const Count key_chunks = (p.kv_seq - 1) / plan.tiling.key_rows + 1;
  const Count tile_rows = std::min(rows, Count(kProductTiles.query_rows));
  const Count tile_keys = std::min(keys, Count(kProductTiles.key_rows));
  return rows * keys + key_chunks * rows * (Count(p.head_dim) + 2) + tile_rows * keys +
         (Count(3) * tile_rows + Count(2) * tile_keys) * p.head_dim;
}

/// What a thread keeps: its tiles of S, P, dP and dS, of Q, O, dO and dQ, of K, V, dK and dV, and of O and L
/// in parts.
Count thread_elements(const RunPlan& plan) {
  if (plan.algorithm == Algorithm::memory_efficient) return chunk_elements(plan);
  const Problem p = plan.algorithm == Algorithm::split_kv ? packed_heads(plan.problem) : plan.problem;
  const bool pads = plan.switches.fault == Fault::unmasked_padding;
  const Count rows = std::min(plan.tiling.query_rows, p.seq);
  const Count keys = pads ? plan.tiling.key_rows : std::min(plan.tiling.key_rows, p.kv_seq);
  const Count score_keys = facts_of(plan.algorithm).tiled ? keys : Count(p.kv_seq);
  const Count passes = plan.backward ? 2 : 1;
  // S of one query tile, whole, where it is stored between passes.
  const Count kept = plan.algorithm == Algorithm::three_pass_stored ? rows * p.kv_seq : Count(0);
  // The parts of a query tile, and the one that is being added.
  const std::int64_t splits = plan.method().splits;
  const Count parts = splits > 1 ? rows * (Count(splits) * (Count(p.head_dim) + 1) + p.head_dim) : Count(0);
  return kept + parts +
         passes *
             (Count(2) * rows * score_keys + Count(2) * rows * p.head_dim + Count(2) * keys * p.head_dim);
}

/// Whole matrices, which the backward pass of the untiled algorithms keeps for each head that is worked on.
Count matrix_elements(const RunPlan& plan) {
  const Problem& p = plan.problem;
  if (!plan.backward || facts_of(plan.algorithm).tiled) return 0;
  const Count at_once = std::min(Count(plan.threads), Count(p.batch) * p.kv_heads);
  return at_once * 2 * p.seq * p.kv_seq;
}

}  // namespace

Bytes memory_of(const RunPlan& plan) {
  const Count elements =
      tensor_elements(plan) + Count(plan.threads) * thread_elements(plan) + matrix_elements(plan);
  return Bytes(elements * size_of(plan.compute));
}

Bytes physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? Bytes(Count(pages) * page) : Bytes(Count::overflow());
}

Error not_enough_memory(const RunPlan& plan) {
  return {fmt::format("the system didn't give this run the {} of memory that it needs ({})",
                      size_text(memory_of(plan)), shape_text(plan.problem)),
          kSmaller};
}

Outcome check_memory(const RunPlan& plan, Bytes available) {
  const Bytes needed = memory_of(plan);
  if (needed <= available && !needed.overflowed()) return std::nullopt;
  return Error{fmt::format("this run needs {} ({}), and this machine has {}",
                           needed.overflowed() ? std::string("more memory than 64 bits can count")
                                               : size_text(needed) + " of memory",
                           shape_text(plan.problem), size_text(available)),
               kSmaller};
}

}  // namespace flashsim
