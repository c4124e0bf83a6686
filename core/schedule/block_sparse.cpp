// Block-sparse FlashAttention (arXiv 2205.14135, Proposition 4) with query tiles outside, as FlashAttention-2
// has them: tiles that the pattern leaves out, or that the causal mask hides, are neither loaded nor
// computed. A query tile without a tile stores zeros and −∞. Without a pattern every tile is there.
#include "core/problem/block_pattern.hpp"
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

void walk_block_sparse(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  const BlockPattern* pattern = method.pattern.get();
  const auto next = [&](std::int64_t i, std::int64_t j) {
    return pattern == nullptr ? j : pattern->next(i, j);
  };
  using enum Operation;
  listener.allocate(Operand::O, whole_size(Operand::O, problem));
  listener.allocate(Operand::L, whole_size(Operand::L, problem));
  listener.kernel("attention", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    listener.block();
    listener.step(grid.on_rows(load, i, Operand::Q));
    listener.step(grid.on_rows(reset, i));
    const std::int64_t visited = grid.visited_key_tiles(i);
    for (std::int64_t j = next(i, 0); j < visited; j = next(i, j + 1)) {
      listener.step(grid.move(load, Operand::K, i, j));
      listener.step(grid.move(load, Operand::V, i, j));
      listener.step(grid.at(scores, i, j));
      listener.step(grid.mask(i, j));
      listener.step(grid.at(online_softmax, i, j));
      listener.step(grid.at(rescale, i, j));
      listener.step(grid.at(accumulate, i, j));
      listener.step(grid.at(discard, i, j));
    }
    listener.step(grid.on_rows(finish, i, Operand::L));
    listener.step(grid.on_rows(store, i, Operand::O));
    listener.step(grid.on_rows(store, i, Operand::L));
  }
}

}  // namespace flashsim
