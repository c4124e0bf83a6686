// What a tiled kernel visits, summed in closed form: how many tile pairs, rows, keys and entries, and
// how many of them lie in tiles that hold a masked pair. Built from N, Nkv, Br, Bc and the diagonal's
// offset alone.
#pragma once

#include "core/base/count.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

/// Sums over a set of (query tile i, key tile j) pairs of one head, with rowsᵢ and keysⱼ the valid rows
/// of a tile.
struct PairSums {
  Count pairs;    ///< Σ 1
  Count rows;     ///< Σ rowsᵢ
  Count keys;     ///< Σ keysⱼ
  Count entries;  ///< Σ rowsᵢ · keysⱼ
};

struct Visited {
  Count query_tiles;    ///< Tr
  Count key_tiles;      ///< Tc
  PairSums all;         ///< every pair of the grid
  PairSums visited;     ///< pairs with at least one visible entry
  PairSums masked;      ///< visited pairs with at least one masked entry
  PairSums masked_all;  ///< pairs of the grid with at least one masked entry
  Count keys_reached;   ///< keys of the key tiles that some query tile visits
  Count tiles_reached;  ///< the number of those key tiles
};

Visited visited_sums(const Problem& problem, Tiling tiling);

/// Visible (query, key) pairs of one head.
Count visible_pairs(const Problem& problem);

}  // namespace flashsim
