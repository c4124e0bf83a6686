// Memory-efficient attention (arXiv 2112.05682) as its framework code runs it: the tiles are chunks, taken
// one after another for all heads at once. For every pair of chunks one kernel writes the chunk of S, one
// reads it and writes P with the chunk's own maximum and sum, and one writes the chunk's part of O. When all
// key chunks of a query chunk are done, a kernel combines the parts. No chunk is skipped, and each buffer is
// used again.
//
// The kernels work on tiles inside the chunk, kProductTiles, as those of `standard` do on the whole matrix.
#include <algorithm>

#include "core/schedule/tile_grid.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// The tiles inside a range of rows or keys.
class Blocks {
 public:
  Blocks(Range whole, std::int64_t size) : whole_(whole), size_(size) {}
  [[nodiscard]] std::int64_t count() const { return (whole_.size() + size_ - 1) / size_; }
  [[nodiscard]] Range at(std::int64_t n) const {
    const std::int64_t begin = whole_.begin + n * size_;
    return {begin, std::min(begin + size_, whole_.end)};
  }

 private:
  Range whole_;
  std::int64_t size_;
};

/// Query chunk i with key chunk j.
class Chunk {
 public:
  Chunk(const TileGrid& grid, std::int64_t i, std::int64_t j)
      : grid_(grid),
        i_(i),
        j_(j),
        rows_(grid.rows(i), kProductTiles.query_rows),
        keys_(grid.keys(j), kProductTiles.key_rows) {}

  void write_scores(Listener& listener) const {
    for (std::int64_t r = 0; r < rows_.count(); ++r) {
      for (std::int64_t c = 0; c < keys_.count(); ++c) {
        listener.step(at(load, r, c, Operand::Q, c > 0));
        listener.step(at(load, r, c, Operand::K, r > 0));
        listener.step(at(scores, r, c));
        listener.step(at(store, r, c, Operand::S));
      }
    }
  }
  void write_exponentials(Listener& listener) const {
    const bool idle = grid_.visible_whole(i_, j_);
    for (std::int64_t r = 0; r < rows_.count(); ++r) {
      listener.step(on_rows(reset, r));
      for (std::int64_t c = 0; c < keys_.count(); ++c) {
        listener.step(at(load, r, c, Operand::S));
        Step mask = at(Operation::mask, r, c);
        mask.idle = idle;
        listener.step(mask);
      }
      listener.step(on_rows(row_maximum, r));
      listener.step(on_rows(denominator, r, Operand::P));
      for (std::int64_t c = 0; c < keys_.count(); ++c) listener.step(at(store, r, c, Operand::P));
      listener.step(on_rows(store, r, Operand::m_part));
      listener.step(on_rows(store, r, Operand::l_part));
    }
  }
  void write_output(Listener& listener) const {
    for (std::int64_t r = 0; r < rows_.count(); ++r) {
      listener.step(on_rows(reset, r));
      for (std::int64_t c = 0; c < keys_.count(); ++c) {
        listener.step(at(load, r, c, Operand::P));
        listener.step(at(load, r, c, Operand::V, r > 0));
        listener.step(at(accumulate, r, c));
      }
      listener.step(on_rows(store, r, Operand::O_part));
    }
  }
  /// A step on block `r` of the rows and all keys of the chunk.
  [[nodiscard]] Step on_rows(Operation operation, std::int64_t r, Operand operand = {}) const {
    Step step = grid_.move(operation, operand, i_, j_);
    step.rows = rows_.at(r);
    return step;
  }

 private:
  /// A step on block `r` of the rows and block `c` of the keys.
  [[nodiscard]] Step at(Operation operation, std::int64_t r, std::int64_t c, Operand operand = {},
                        bool again = false) const {
    Step step = grid_.move(operation, operand, i_, j_, again);
    step.rows = rows_.at(r);
    step.keys = keys_.at(c);
    return step;
  }

  const TileGrid& grid_;
  std::int64_t i_, j_;
  Blocks rows_, keys_;
};

/// O of query chunk i from the parts that its key chunks left: first their maxima, then what they summed.
void walk_combine(const TileGrid& grid, std::int64_t i, Listener& listener) {
  const Blocks blocks(grid.rows(i), kProductTiles.query_rows);
  for (std::int64_t r = 0; r < blocks.count(); ++r) {
    const auto on_rows = [&](Operation operation, Operand operand = {}) {
      Step step = grid.on_rows(operation, i, operand);
      step.rows = blocks.at(r);
      return step;
    };
    listener.step(on_rows(reset));
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      listener.step(Chunk(grid, i, j).on_rows(load, r, Operand::m_part));
    }
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      const Chunk chunk(grid, i, j);
      listener.step(chunk.on_rows(load, r, Operand::l_part));
      listener.step(chunk.on_rows(load, r, Operand::O_part));
      listener.step(chunk.on_rows(combine, r));
    }
    listener.step(on_rows(finish, Operand::O));
    listener.step(on_rows(store, Operand::O));
  }
}

/// What lies in HBM beside O: one chunk each of S and P, and the parts of one query chunk.
void allocate_chunks(const TileGrid& grid, Listener& listener) {
  const Problem& p = grid.problem();
  const Count heads = Count(p.batch) * p.heads;
  const Count rows = grid.rows(0).size();
  const auto allocate = [&](Operand operand, Count elements) {
    listener.allocate(operand, Bytes(heads * elements * element_size(operand, p)));
  };
  allocate(Operand::S, rows * grid.keys(0).size());
  allocate(Operand::P, rows * grid.keys(0).size());
  allocate(Operand::O_part, rows * grid.key_tiles() * p.head_dim);
  allocate(Operand::m_part, rows * grid.key_tiles());
  allocate(Operand::l_part, rows * grid.key_tiles());
}

void tell_launches(const TileGrid& grid, Listener& listener) {
  std::int64_t row_blocks = 0;
  std::int64_t key_blocks = 0;
  for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
    row_blocks += Blocks(grid.rows(i), kProductTiles.query_rows).count();
  }
  for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
    key_blocks += Blocks(grid.keys(j), kProductTiles.key_rows).count();
  }
  const std::int64_t pairs = grid.query_tiles() * grid.key_tiles();
  listener.launches("scores", pairs, row_blocks * key_blocks);
  listener.launches("exponentials", pairs, row_blocks * grid.key_tiles());
  listener.launches("output", pairs, row_blocks * grid.key_tiles());
  listener.launches("combine", grid.query_tiles(), row_blocks);
}

}  // namespace

void walk_memory_efficient(const Problem& problem, const Method& method, Range part, Listener& listener) {
  const TileGrid grid(problem, method.tiling);
  listener.allocate(Operand::O, whole_size(Operand::O, grid.problem()));
  allocate_chunks(grid, listener);
  if (part.begin == 0) tell_launches(grid, listener);
  for (std::int64_t i = part.begin; i < part.end; ++i) {
    for (std::int64_t j = 0; j < grid.key_tiles(); ++j) {
      const Chunk chunk(grid, i, j);
      chunk.write_scores(listener);
      chunk.write_exponentials(listener);
      chunk.write_output(listener);
    }
    walk_combine(grid, i, listener);
  }
}

}  // namespace flashsim
