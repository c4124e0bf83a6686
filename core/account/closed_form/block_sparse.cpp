// Block-sparse FlashAttention forward (arXiv 2205.14135, Proposition 4, with query tiles outside): what
// FlashAttention-2 moves, summed over the blocks that the pattern keeps and the causal mask shows. The blocks
// of a query tile are runs of key tiles: one for a window, one and every C-th tile for a strided pattern, and
// the runs of ones of a row that is spelled out. Each run is summed at once.
#include <algorithm>

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_tiles.hpp"
#include "core/problem/block_pattern.hpp"

namespace flashsim {
namespace {

Wide ceil_div(Wide a, Wide b) { return (a + b - 1) / b; }
/// ⌊a / b⌋ for any a.
Wide floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
/// 0 + 1 + … + (n − 1)
Wide triangle(Wide n) { return n * (n - 1) / 2; }

/// Key tiles [begin, end).
struct Run {
  Wide begin = 0;
  Wide end = 0;
};

class PatternSums {
 public:
  PatternSums(const Problem& problem, const BlockPattern& pattern)
      : request_(pattern.request()),
        causal_(problem.causal),
        seq_(problem.seq),
        kv_seq_(problem.kv_seq),
        br_(pattern.tiling().query_rows),
        bc_(pattern.tiling().key_rows),
        key_tiles_(ceil_div(kv_seq_, bc_)),
        offset_(problem.alignment == CausalAlignment::bottom_right ? kv_seq_ - seq_ : 0) {
    for (Wide i = 0; i < ceil_div(seq_, br_); ++i) {
      first_ = i * br_;
      end_ = std::min((i + 1) * br_, seq_);
      seen_whole_ = keys_seen(first_) == kv_seq_ ? key_tiles_ : keys_seen(first_) / bc_;
      touched_ = ceil_div(keys_seen(end_ - 1), bc_);
      switch (request_.kind) {
        case PatternKind::window: add_window(); break;
        case PatternKind::strided: add_strided(); break;
        case PatternKind::rows: add_row(request_.rows[static_cast<std::size_t>(i)]); break;
      }
    }
  }

  [[nodiscard]] Count kept() const { return Count::from_wide(kept_); }
  /// Pairs of a query and a key that are seen.
  [[nodiscard]] Count visible() const { return Count::from_wide(visible_); }
  [[nodiscard]] PairSums visited() const { return visited_; }
  [[nodiscard]] PairSums masked() const { return masked_; }

 private:
  /// Keys that the causal mask leaves to a query.
  [[nodiscard]] Wide keys_seen(Wide query) const {
    return causal_ ? std::clamp<Wide>(query + offset_ + 1, 0, kv_seq_) : kv_seq_;
  }
  [[nodiscard]] Wide keys_of(Run run) const {
    return run.end > run.begin ? std::min(run.end * bc_, kv_seq_) - run.begin * bc_ : 0;
  }
  static Run both(Run a, Run b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

  /// Tiles of which every `step`-th of `run` is meant, their keys told by the caller.
  void add_to(PairSums& sums, Wide tiles, Wide keys) const {
    const Count rows = Count::from_wide(end_ - first_);
    sums.pairs += Count::from_wide(tiles);
    sums.rows += Count::from_wide(tiles) * rows;
    sums.keys += Count::from_wide(keys);
    sums.entries += Count::from_wide(keys) * rows;
  }
  /// Seen pairs of this query tile with keys [begin, end).
  [[nodiscard]] Wide pairs_seen(Wide begin, Wide end) const {
    if (!causal_) return (end_ - first_) * (end - begin);
    // Query q sees q + offset + 1 − begin of them: none, then one more from query to query, then all.
    const Wide none_before = std::clamp<Wide>(begin - offset_, first_, end_);
    const Wide all_from = std::clamp<Wide>(end - offset_ - 1, none_before, end_);
    const Wide least = none_before + offset_ + 1 - begin;
    const Wide rising = all_from - none_before;
    return rising * least + triangle(rising) + (end_ - all_from) * (end - begin);
  }
  /// A run of tiles that are there.
  void add(Run run) {
    run = both(run, {0, key_tiles_});
    if (run.begin >= run.end) return;
    kept_ += run.end - run.begin;
    run = both(run, {0, touched_});
    if (run.begin >= run.end) return;
    add_to(visited_, run.end - run.begin, keys_of(run));
    const Run masked = both(run, {seen_whole_, touched_});
    if (masked.begin < masked.end) add_to(masked_, masked.end - masked.begin, keys_of(masked));
    visible_ += pairs_seen(run.begin * bc_, std::min(run.end * bc_, kv_seq_));
  }

  void add_window() {
    // The keys that are less than W from some query of the tile.
    const Wide from = std::max<Wide>(first_ + offset_ - request_.size + 1, 0);
    const Wide to = std::min(end_ - 1 + offset_ + request_.size - 1, kv_seq_ - 1);
    if (from <= to) add({from / bc_, to / bc_ + 1});
  }

  void add_strided() {
    const Wide stride = request_.size;
    const Wide diagonal = floor_div(end_ - 1 + offset_, bc_);
    const Run local = both({diagonal - stride + 1, diagonal + 1}, {0, key_tiles_});
    const bool has_local = local.begin < local.end;
    if (has_local) add(local);
    // The stripes before the local tiles, and those behind them.
    add_stripes({0, has_local ? local.begin : key_tiles_});
    if (has_local) add_stripes({local.end, key_tiles_});
  }

  /// Tiles j of `run` with (j + 1) mod C = 0: all at once up to where the mask begins, then one by one.
  void add_stripes(Run run) {
    const Wide stride = request_.size;
    const Wide plain_end = std::clamp(std::min(seen_whole_, key_tiles_ - 1), run.begin, run.end);
    const Wide before = run.begin / stride;
    const Wide tiles = plain_end / stride - before;
    kept_ += tiles;
    add_to(visited_, tiles, tiles * bc_);
    visible_ += tiles * bc_ * (end_ - first_);
    Wide stripe = plain_end / stride + 1;
    for (; stripe * stride <= std::min(run.end, touched_); ++stripe) {
      add({stripe * stride - 1, stripe * stride});
    }
    // Behind the mask they are there and aren't visited.
    kept_ += std::max<Wide>(run.end / stride - (stripe - 1), 0);
  }

  void add_row(const std::string& row) {
    for (std::size_t begin = row.find('1'); begin != std::string::npos;) {
      const std::size_t end = std::min(row.find('0', begin), row.size());
      add({static_cast<Wide>(begin), static_cast<Wide>(end)});
      begin = row.find('1', end);
    }
  }

  const PatternRequest& request_;
  bool causal_;
  Wide seq_, kv_seq_, br_, bc_, key_tiles_, offset_;
  Wide first_ = 0, end_ = 0;           ///< queries of this tile
  Wide seen_whole_ = 0, touched_ = 0;  ///< key tiles that all of them see, and that some of them sees
  Wide kept_ = 0, visible_ = 0;
  PairSums visited_, masked_;
};

}  // namespace

Prediction predict_block_sparse(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  if (method.pattern != nullptr) {
    const PatternSums sums(problem, *method.pattern);
    w.pattern({.kept = sums.kept(),
               .blocks = w.sums.query_tiles * w.sums.key_tiles,
               .dense = w.sums.visited.pairs});
    w.sums.visited = sums.visited();
    w.sums.masked = sums.masked();
  }
  write_flash2(w);
  return w.finish();
}

Count visible_pairs_of_pattern(const Problem& problem, const Method& method) {
  return method.pattern == nullptr ? visible_pairs(problem) : PatternSums(problem, *method.pattern).visible();
}

}  // namespace flashsim
