// Split-KV attention (flash-decoding): the query heads of a group packed into one, and the key tiles split
// into S runs, each with a thread block of its own that walks it as FlashAttention-2 does and leaves an
// output and a logsumexp. A second kernel combines them: O = Σ exp(L_s − L) O_s. One part alone is
// FlashAttention-2, packed, and leaves O and L themselves.
#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

class SplitWalk {
 public:
  SplitWalk(const TileGrid& grid, std::int64_t splits, Listener& listener)
      : grid_(grid),
        splits_(splits),
        tiles_a_split_((grid.key_tiles() - 1) / splits + 1),
        listener_(listener) {}

  /// The block of query tile i and part s.
  void attend(std::int64_t i, std::int64_t s) {
    using enum Operation;
    listener_.block();
    const std::int64_t visited = grid_.visited_key_tiles(i);
    // Only so many parts have tiles; those behind them may be any number.
    const bool has_tiles = s <= (grid_.key_tiles() - 1) / tiles_a_split_;
    const std::int64_t begin = has_tiles ? s * tiles_a_split_ : visited;
    const std::int64_t end = has_tiles ? std::min(begin + tiles_a_split_, visited) : visited;
    // One that reads no parts loads its queries as FlashAttention-2 does, whatever they see.
    if (begin < end || splits_ == 1) listener_.step(part(grid_.on_rows(load, i, Operand::Q), s));
    Step start = part(grid_.on_rows(reset, i), s);
    start.keys = begin < end ? Range{grid_.keys(begin).begin, grid_.keys(end - 1).end} : Range{};
    listener_.step(start);
    for (std::int64_t j = begin; j < end; ++j) {
      listener_.step(part(grid_.move(load, Operand::K, i, j), s));
      listener_.step(part(grid_.move(load, Operand::V, i, j), s));
      listener_.step(part(grid_.at(scores, i, j), s));
      listener_.step(part(grid_.mask(i, j), s));
      listener_.step(part(grid_.at(online_softmax, i, j), s));
      listener_.step(part(grid_.at(rescale, i, j), s));
      listener_.step(part(grid_.at(accumulate, i, j), s));
      listener_.step(part(grid_.at(discard, i, j), s));
    }
    const bool whole = splits_ == 1;
    listener_.step(part(grid_.on_rows(finish, i, whole ? Operand::L : Operand::L_part), s));
    listener_.step(part(grid_.on_rows(store, i, whole ? Operand::O : Operand::O_part), s));
    listener_.step(part(grid_.on_rows(store, i, whole ? Operand::L : Operand::L_part), s));
  }

  /// The block that combines the parts of query tile i.
  void combine(std::int64_t i) {
    using enum Operation;
    listener_.block();
    listener_.step(grid_.on_rows(reset, i));
    for (std::int64_t s = 0; s < splits_; ++s) {
      listener_.step(part(grid_.on_rows(load, i, Operand::L_part), s));
    }
    for (std::int64_t s = 0; s < splits_; ++s) {
      listener_.step(part(grid_.on_rows(load, i, Operand::O_part), s));
      listener_.step(part(grid_.on_rows(Operation::combine, i, Operand::O_part), s));
    }
    listener_.step(grid_.on_rows(finish, i, Operand::L));
    listener_.step(grid_.on_rows(store, i, Operand::O));
    listener_.step(grid_.on_rows(store, i, Operand::L));
  }

 private:
  [[nodiscard]] Step part(Step step, std::int64_t s) const {
    if (splits_ > 1) step.part = s;
    return step;
  }

  const TileGrid& grid_;
  std::int64_t splits_;
  std::int64_t tiles_a_split_;
  Listener& listener_;
};

}  // namespace

void walk_split_kv(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const Problem packed = packed_heads(problem);
  const TileGrid grid(packed, method.tiling);
  const std::int64_t splits = method.splits;
  SplitWalk walk(grid, splits, listener);
  listener.allocate(Operand::O, whole_size(Operand::O, packed));
  listener.allocate(Operand::L, whole_size(Operand::L, packed));
  if (splits > 1) {
    listener.allocate(Operand::O_part, whole_size(Operand::O_part, packed) * splits);
    listener.allocate(Operand::L_part, whole_size(Operand::L_part, packed) * splits);
  }
  listener.kernel("attention", grid.query_tiles() * splits);
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t s = 0; s < splits; ++s) walk.attend(i, s);
  }
  if (splits == 1) return;
  listener.kernel("combine", grid.query_tiles());
  for (std::int64_t i = part.begin; i < part.end; ++i) walk.combine(i);
}

}  // namespace flashsim
