#include "core/account/closed_form/visited.hpp"

#include <algorithm>
#include <cstdint>

#include "core/account/closed_form/floor_sum.hpp"

namespace flashsim {
namespace {

Wide ceil_div(Wide a, Wide b) { return (a + b - 1) / b; }

/// Query q sees clamp(q + 1 + offset, 0, Nkv) keys. Without a mask every query sees them all.
Wide diagonal_offset(const Problem& problem) {
  if (!problem.causal) return problem.kv_seq;
  return problem.alignment == CausalAlignment::bottom_right
             ? Wide(problem.kv_seq) - problem.seq / problem.rows_per_query
             : 0;
}

/// Tiles and keys of the first so many key tiles.
struct Prefix {
  Wide tiles = 0;
  Wide keys = 0;
};

/// The two questions asked of a row: which key tiles does it touch, and which does it see whole.
enum class Edge { touched, seen_whole };

/// Rows of which G belong to one query see ⌊x/G⌋ keys, where x rises by one from row to row. Floors collapse,
/// ⌊(⌊x/G⌋ + c)/Bc⌋ = ⌊(x + c·G)/(G·Bc)⌋, so that everything is asked of x.
class Line {
 public:
  Line(const Problem& problem, Tiling tiling)
      : kv_seq_(problem.kv_seq),
        key_rows_(tiling.key_rows),
        key_tiles_(ceil_div(kv_seq_, key_rows_)),
        query_rows_(tiling.query_rows),
        group_(problem.rows_per_query) {}

  /// The key tiles that a row with ⌊x/G⌋ visible keys touches or sees whole.
  [[nodiscard]] Prefix at(Wide x, Edge edge) const {
    const Wide seen = std::min(std::max<Wide>(x, 0) / group_, kv_seq_);
    if (seen == kv_seq_) return {key_tiles_, kv_seq_};
    const Wide tiles = edge == Edge::touched ? ceil_div(seen, key_rows_) : seen / key_rows_;
    return {tiles, std::min(tiles * key_rows_, kv_seq_)};
  }

  /// Σ at(i·Br + start) over i = 0 … n−1.
  [[nodiscard]] Prefix sum(Wide n, Wide start, Edge edge) const {
    // Between `low` and `high` the number of tiles is ⌊(i·Br + shifted) / (G·Bc)⌋ and every one is full.
    // Below it is 0; above it is all of them, the last of which may be ragged.
    const Wide full_keys = edge == Edge::touched ? (key_tiles_ - 1) * key_rows_ : kv_seq_ - 1;
    const Wide full_up_to = full_keys * group_ + group_ - 1;
    const Wide low = std::clamp<Wide>(start > 0 ? 0 : (-start) / query_rows_ + 1, 0, n);
    const Wide high =
        std::clamp<Wide>(full_up_to < start ? 0 : (full_up_to - start) / query_rows_ + 1, low, n);
    const Wide shifted = low * query_rows_ + start + (edge == Edge::touched ? (key_rows_ - 1) * group_ : 0);
    const Wide inside = high > low ? floor_sum(high - low, key_rows_ * group_, query_rows_, shifted) : 0;
    return {inside + (n - high) * key_tiles_, inside * key_rows_ + (n - high) * kv_seq_};
  }

 private:
  Wide kv_seq_;
  Wide key_rows_;
  Wide key_tiles_;
  Wide query_rows_;
  Wide group_;
};

/// Pair sums from the prefixes of the full query tiles, added up, and of the last query tile.
PairSums pair_sums(Prefix full, Prefix last, Wide query_rows, Wide last_rows) {
  return {.pairs = Count::from_wide(full.tiles + last.tiles),
          .rows = Count::from_wide(full.tiles * query_rows + last.tiles * last_rows),
          .keys = Count::from_wide(full.keys + last.keys),
          .entries = Count::from_wide(full.keys) * Count::from_wide(query_rows) +
                     Count::from_wide(last.keys) * Count::from_wide(last_rows)};
}

PairSums minus(PairSums a, PairSums b) {
  return {a.pairs - b.pairs, a.rows - b.rows, a.keys - b.keys, a.entries - b.entries};
}

}  // namespace

Visited visited_sums(const Problem& problem, Tiling tiling) {
  const Wide seq = problem.seq;
  const Wide br = tiling.query_rows;
  // Row 0 sees ⌊first/G⌋ keys.
  const Wide first = (diagonal_offset(problem) + 1) * problem.rows_per_query;
  const Wide query_tiles = ceil_div(seq, br);
  const Wide last_rows = seq - (query_tiles - 1) * br;
  const Line line(problem, tiling);

  // A query tile touches what its last row touches, and sees whole what its first row sees whole.
  const Wide full_tiles = query_tiles - 1;
  const Prefix last_touched = line.at(seq - 1 + first, Edge::touched);
  const PairSums touched =
      pair_sums(line.sum(full_tiles, br - 1 + first, Edge::touched), last_touched, br, last_rows);
  const PairSums whole = pair_sums(line.sum(full_tiles, first, Edge::seen_whole),
                                   line.at(full_tiles * br + first, Edge::seen_whole), br, last_rows);
  const Prefix every = line.at(Wide(problem.kv_seq) * problem.rows_per_query, Edge::touched);
  const PairSums all = pair_sums({every.tiles * full_tiles, every.keys * full_tiles}, every, br, last_rows);
  return {.query_tiles = Count::from_wide(query_tiles),
          .key_tiles = Count::from_wide(every.tiles),
          .all = all,
          .visited = touched,
          .masked = minus(touched, whole),
          .masked_all = minus(all, whole),
          .keys_reached = Count::from_wide(last_touched.keys),
          .tiles_reached = Count::from_wide(last_touched.tiles)};
}

Count visible_pairs(const Problem& problem) {
  // Rows that see nothing, then rows that each see one key more, then rows that see them all.
  const Wide offset = diagonal_offset(problem);
  const Wide seq = problem.seq / problem.rows_per_query;
  const Wide kv_seq = problem.kv_seq;
  const Wide first = std::clamp<Wide>(-offset, 0, seq);
  const Wide full = std::clamp<Wide>(kv_seq - offset, first, seq);
  const Wide rising = (full - first) * (first + offset + 1 + full + offset) / 2;
  return Count::from_wide((rising + (seq - full) * kv_seq) * problem.rows_per_query);
}

}  // namespace flashsim
