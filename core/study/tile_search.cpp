#include "core/study/tile_search.hpp"

#include <algorithm>

#include "core/account/prediction.hpp"

namespace flashsim {

TileChoice TileSearch::choice(Tiling tiling) const {
  return {.tiling = tiling,
          .footprint = tile_footprint(problem_, tiling),
          .hbm = predict_unexplained(problem_, {.algorithm = algorithm_, .tiling = tiling})
                     .tally.hbm_total()
                     .total()};
}

std::int64_t TileSearch::behind(std::int64_t size, std::int64_t longest) const {
  if (size == longest) return 0;
  return multiple_of_ >= longest - size ? longest : size + multiple_of_;
}

std::int64_t TileSearch::candidates(Bytes sram) const {
  std::int64_t count = 0;
  for (std::int64_t keys = behind(0, problem_.kv_seq); keys != 0; keys = behind(keys, problem_.kv_seq)) {
    if (!fits(problem_, {.query_rows = 1, .key_rows = keys}, sram)) break;
    // Br goes up to what is left, in multiples; the whole sequence may be one more.
    const std::int64_t rows = sram.value() / (problem_.head_dim * size_of(problem_.storage)) - 2 * keys;
    count += std::min(rows, problem_.seq) / multiple_of_;
    if (problem_.seq <= rows && problem_.seq % multiple_of_ != 0) ++count;
    if (count > kMostCandidates) break;
  }
  return count;
}

std::vector<TileChoice> TileSearch::front(Bytes sram) const {
  std::vector<TileChoice> all;
  for (std::int64_t outer = behind(0, longest_outer()); outer != 0; outer = behind(outer, longest_outer())) {
    // Inner tiles of one row bound what any inner tile moves: a larger one only adds rows that nobody needs.
    const Bytes least = choice(tiling(outer, 1)).hbm;
    for (std::int64_t inner = behind(0, longest_inner()); inner != 0;
         inner = behind(inner, longest_inner())) {
      if (!fits(problem_, tiling(outer, inner), sram)) break;
      all.push_back(choice(tiling(outer, inner)));
      if (all.back().hbm == least) break;
    }
    if (!fits(problem_, tiling(outer, 1), sram)) break;
  }
  std::sort(all.begin(), all.end(), [](const TileChoice& a, const TileChoice& b) {
    if (a.footprint != b.footprint) return a.footprint < b.footprint;
    if (a.hbm != b.hbm) return a.hbm < b.hbm;
    return a.tiling.query_rows > b.tiling.query_rows;
  });
  std::vector<TileChoice> front;
  for (const TileChoice& tile : all) {
    if (!tile.hbm.overflowed() && (front.empty() || tile.hbm < front.back().hbm)) front.push_back(tile);
  }
  return front;
}

std::optional<TileChoice> TileSearch::smallest_outer(Tiling chosen, Bytes standard,
                                                     std::int64_t largest) const {
  const std::int64_t inner = outer_is_keys() ? chosen.query_rows : chosen.key_rows;
  for (std::int64_t outer = 1; outer <= largest; ++outer) {
    const TileChoice tile = choice(tiling(outer, inner));
    if (tile.hbm <= standard) return tile;
  }
  return std::nullopt;
}

std::optional<TileChoice> TileSearch::smallest_footprint(Bytes standard) const {
  std::optional<TileChoice> smallest;
  const std::int64_t least_inner = behind(0, longest_inner());
  std::int64_t tried = 0;
  for (std::int64_t outer = behind(0, longest_outer()); outer != 0; outer = behind(outer, longest_outer())) {
    if (smallest && tile_footprint(problem_, tiling(outer, least_inner)) >= smallest->footprint) break;
    if (++tried > kMostCandidates) break;
    if (choice(tiling(outer, 1)).hbm > standard) continue;
    for (std::int64_t inner = least_inner; inner != 0; inner = behind(inner, longest_inner())) {
      if (smallest && tile_footprint(problem_, tiling(outer, inner)) >= smallest->footprint) break;
      if (++tried > kMostCandidates) break;
      const TileChoice tile = choice(tiling(outer, inner));
      if (tile.hbm > standard) continue;
      smallest = tile;
      break;
    }
  }
  return smallest;
}

}  // namespace flashsim
