// The best tiles for a size of on-chip memory: for each loop order the tile that moves the fewest HBM bytes,
// beside the paper's rule and the default choice; what no schedule can avoid, what the theory's lower bound
// says, and where each order stops paying against standard attention. Every figure of a tile is the closed
// form's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"
#include "core/study/request.hpp"

namespace flashsim {

/// Sizes of candidate tiles are multiples of this where nothing else is said.
inline constexpr std::int64_t kUsualMultiple = 16;
/// The most candidates of one loop order, and the most tiles that a search tries.
inline constexpr std::int64_t kMostCandidates = 250'000;
/// The largest size that is tried in the search for the smallest tile that pays.
inline constexpr std::int64_t kLargestTileTried = 1 << 17;

struct TuneRequest {
  AccountRequest account;  ///< problem, machine and SRAM; algorithm and tiles are what is looked for
  std::optional<std::int64_t> multiple_of;
};

/// A tile and what it comes to.
struct TileChoice {
  Tiling tiling;
  Bytes footprint;  ///< shared memory of Q_i, K_j and V_j
  Bytes hbm;
};

/// Where an order pays: where it moves at most what standard attention moves, to the byte.
struct Payoff {
  double leading_order_rows = 0;            ///< d/2 or (3d + 4)/4, from the leading order in N without a mask
  std::int64_t searched_rows = 0;           ///< sizes from 1 to this were tried
  std::optional<TileChoice> smallest_tile;  ///< by rows of the outer tile, the other as chosen
  std::optional<TileChoice> smallest_sram;  ///< the candidate with the smallest footprint that pays
};

/// One loop order: flash1 has key/value tiles outside, flash2 query tiles.
struct OrderTuning {
  Algorithm algorithm{};
  std::int64_t candidates = 0;  ///< tiles that fit
  TileChoice best;              ///< fewest HBM bytes; among equals the smallest footprint
  TileChoice paper;             ///< FlashAttention's Algorithm 1: Bc = ⌈M/4d⌉, Br = min(⌈M/4d⌉, d)
  TileChoice chosen;            ///< what an account takes
  std::vector<TileChoice>
      front;  ///< no candidate has both fewer HBM bytes and a smaller footprint; by footprint
  Payoff payoff;
};

/// The lower bound of the theory: an order, without its constant (arXiv 2205.14135, Proposition 3;
/// 2402.07443).
struct TheoryBound {
  std::int64_t elements = 0;  ///< M, in elements of the storage type
  bool large = false;         ///< M ≥ d²: N·Nkv·d²/M a head; else N·Nkv·d/√M
  double bytes = 0;           ///< times B·H and the bytes of an element
};

/// What the lines of the plot are at one size of SRAM.
struct TunedSize {
  Bytes sram;
  TheoryBound theory;
  /// Of each order; absent where no candidate fits, and where too many do.
  std::vector<std::optional<Bytes>> best;
};

struct TuneReport {
  Problem problem;
  Machine machine;
  std::string gpu;  ///< as it was asked for
  Bytes sram;
  std::int64_t multiple_of = kUsualMultiple;

  Bytes compulsory;  ///< Q, K and V in once, O and L out once
  Bytes standard;    ///< what standard attention moves
  TheoryBound theory;
  std::vector<OrderTuning> orders;
  std::vector<TunedSize> curve;  ///< in rising order, around `sram`
};

/// The orders that are tuned, in the order of a report.
inline constexpr Algorithm kTunedOrders[] = {Algorithm::flash1, Algorithm::flash2};

/// The bound for `sram` bytes on the chip.
TheoryBound theory_bound(const Problem& problem, Bytes sram);

/// Bytes that every schedule moves: Q, K and V in once, O and L out once.
Bytes compulsory_bytes(const Problem& problem);

/// Tunes both orders. Errors: whatever is wrong with the request, counts that leave 64 bits, an SRAM in which
/// not one row or no candidate fits, more than kMostCandidates candidates.
Result<TuneReport> make_tuning(const TuneRequest& request);

/// Reads the `input` of a tuning's JSON, or that object alone. `source` names it in errors.
Result<TuneRequest> read_tune_request(std::string_view text, const std::string& source);

}  // namespace flashsim
