// How a kernel behaves on a machine beyond what its schedule says: what a GPU's counters and clock see of it,
// and the papers' account doesn't.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace flashsim {

/// The order in which thread blocks start.
enum class LaunchOrder {
  rows,           ///< tile by tile rising, heads slowest: the order of a grid
  longest_first,  ///< tile by tile falling, heads slowest: under a causal mask the longest of a head start
                  ///< first
  heads_first,    ///< heads fastest: the same tile of every head, then the next tile
  longest_of_all_first,  ///< the same with the tiles falling: the longest tiles of all heads start first
  persistent,  ///< as many blocks as fit are launched once, and each takes the next tile in the order of rows
};

/// The order in which a block visits its key tiles.
enum class KeyOrder { forward, reverse };

/// How the units of an SM work together within a thread block.
enum class Overlap {
  overlapped,  ///< warpgroups take turns: softmax hides under the matrix products (FlashAttention-3)
  serial,      ///< softmax waits for the product and the product for softmax; other blocks of the SM fill in
};

inline constexpr std::array<std::string_view, 5> kLaunchOrders{"rows", "longest-first", "heads-first",
                                                               "longest-of-all-first", "persistent"};
inline constexpr std::array<std::string_view, 2> kKeyOrders{"forward", "reverse"};
inline constexpr std::array<std::string_view, 2> kOverlaps{"overlapped", "serial"};

constexpr std::string_view name_of(LaunchOrder order) {
  return kLaunchOrders[static_cast<std::size_t>(order)];
}
constexpr std::string_view name_of(KeyOrder order) { return kKeyOrders[static_cast<std::size_t>(order)]; }
constexpr std::string_view name_of(Overlap overlap) { return kOverlaps[static_cast<std::size_t>(overlap)]; }

/// Errors: an unknown name, with the nearest one.
Result<LaunchOrder> launch_order_named(std::string_view name);
Result<KeyOrder> key_order_named(std::string_view name);
Result<Overlap> overlap_named(std::string_view name);

/// What a lane of a warp multiplies at a time in a kernel that does its products on the FMA units, out of
/// registers: so many rows by so many keys of S, and by so many columns of O. Whatever one such tile needs it
/// loads from shared memory.
struct LaneTile {
  std::int64_t rows = 1;
  std::int64_t keys = 1;
  std::int64_t columns = 1;
};

/// What a warp multiplies at a time in a kernel that gives the tensor units fragments from its registers
/// (mma.sync), as against products of a whole warpgroup from shared memory (wgmma). So many rows and keys of
/// a tile pair are its own; what it multiplies them by it loads from shared memory, and so does every other
/// warp that needs the same.
struct Fragments {
  std::int64_t warp_rows = 16;
  std::optional<std::int64_t> warp_keys;  ///< all of the tile where absent
  std::int64_t warps = 4;                 ///< of a block
  bool queries_in_registers = false;      ///< else a warp loads its rows of Q again for every key tile
};

struct Habits {
  LaunchOrder launch_order = LaunchOrder::rows;
  std::optional<LaunchOrder>
      query_gradient_order;  ///< of the kernel that makes dQ alone, where it is another
  KeyOrder key_order = KeyOrder::forward;
  Overlap overlap = Overlap::overlapped;
  std::optional<std::int64_t> blocks_per_sm;  ///< what occupancy allows where absent
  std::optional<LaneTile> lanes;  ///< products run on the FMA units; absent: where the type's products run
  std::optional<Fragments> fragments;  ///< products are made by warps, fragment by fragment
};

}  // namespace flashsim
