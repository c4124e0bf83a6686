// Block-sparse FlashAttention (arXiv 2205.14135, Proposition 4) with query tiles outside, as FlashAttention-2
// has them: tiles that the pattern leaves out, or that the causal mask hides, are neither loaded nor
// computed. A query tile without a tile stores zeros and −∞. Without a pattern every tile is there.
#include "core/problem/block_pattern.hpp"
#include "core/schedule/query_tiles_outside.hpp"

namespace flashsim {

void walk_block_sparse(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const BlockPattern* pattern = method.pattern.get();
  walk_query_tiles_outside(problem, method.tiling, part, listener, [pattern](std::int64_t i, std::int64_t j) {
    return pattern == nullptr ? j : pattern->next(i, j);
  });
}

}  // namespace flashsim
