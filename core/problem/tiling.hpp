// How it is computed: the tile sizes, the rule by which they fit a block's shared memory, and the
// rules by which they are chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

struct Tiling {
  std::int64_t query_rows = 128;  ///< Br
  std::int64_t key_rows = 128;    ///< Bc
};

/// The tiles that a matrix product works on where the tiles of an algorithm are chunks in HBM.
inline constexpr Tiling kProductTiles{};

/// The chunks of memory-efficient attention (arXiv 2112.05682), as its released code has them.
inline constexpr Tiling kChunks{.query_rows = 1024, .key_rows = 4096};

/// "128×64": query rows × key rows.
std::string tiling_text(Tiling tiling);

/// Shared memory that the Q, K and V tiles take in the storage type: (Br + 2 Bc) · d · e bytes.
Bytes tile_footprint(const Problem& problem, Tiling tiling);

bool fits(const Problem& problem, Tiling tiling, Bytes shared_memory);

/// The rule of FlashAttention's Algorithm 1 (arXiv 2205.14135): Bc = ⌈M/4d⌉, Br = min(⌈M/4d⌉, d),
/// with M the shared memory in elements of the storage type.
Tiling paper_tiling(const Problem& problem, Bytes shared_memory);

/// Split-kv's: 128×128, with query tiles no longer than the least power of two from 16 on that holds the G·N
/// packed rows. One query in groups of 4 isn't told as a tile of 128 rows.
Tiling packed_tiling(const Problem& problem);

/// What the user asked for; what is absent is chosen.
struct TilingRequest {
  std::optional<std::int64_t> query_rows;
  std::optional<std::int64_t> key_rows;
};

/// The tiles of a run: those asked for, the rest by the paper's rule for flash1, packed_tiling for split-kv
/// and 128×128 for the others, with the chosen sizes halved, Bc then Br in turn, until they fit
/// `shared_memory`. Those of memory-efficient are chunks, 1024×4096 or as much of it as there is: they lie in
/// HBM and fit nothing. `limit_name` is what errors call the limit. Errors, for the tiled algorithms alone:
/// explicit tiles that don't fit (with what they need, what there is and a tile that fits), and a head
/// dimension for which not even one row fits. The others tile their matrix products only, and take any tiles.
Result<Tiling> resolve_tiling(Algorithm algorithm, const Problem& problem, TilingRequest request,
                              Bytes shared_memory, const std::string& limit_name);

}  // namespace flashsim
