// Searches over tiles on the exact closed forms: every candidate that fits, and the smallest that pays.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/study/tune.hpp"

namespace flashsim {

/// The tiles of one loop order on one problem.
class TileSearch {
 public:
  TileSearch(Algorithm algorithm, const Problem& problem, std::int64_t multiple_of)
      : algorithm_(algorithm), problem_(problem), multiple_of_(multiple_of) {}

  /// What a tile comes to.
  [[nodiscard]] TileChoice choice(Tiling tiling) const;

  /// The number of candidates whose footprint is at most `sram`: Br and Bc multiples of the given number, and
  /// the whole sequences beside them. Counted up to a little more than kMostCandidates.
  [[nodiscard]] std::int64_t candidates(Bytes sram) const;

  /// Of those candidates the ones that no other beats in both footprint and HBM bytes, by rising footprint:
  /// the last has the fewest bytes.
  [[nodiscard]] std::vector<TileChoice> front(Bytes sram) const;

  /// The smallest outer tile (Br of flash2, Bc of flash1) with the other as in `chosen` that moves at most
  /// `standard`. Sizes up to `largest` are tried one by one: ragged and causal tiles make HBM bytes fall
  /// unevenly.
  [[nodiscard]] std::optional<TileChoice> smallest_outer(Tiling chosen, Bytes standard,
                                                         std::int64_t largest) const;

  /// Of all candidates, whatever their footprint, the smallest that moves at most `standard`.
  [[nodiscard]] std::optional<TileChoice> smallest_footprint(Bytes standard) const;

  /// Rows or keys of the longest outer tile.
  [[nodiscard]] std::int64_t longest_outer() const {
    return outer_is_keys() ? problem_.kv_seq : problem_.seq;
  }

 private:
  [[nodiscard]] bool outer_is_keys() const { return algorithm_ == Algorithm::flash1; }
  [[nodiscard]] std::int64_t longest_inner() const {
    return outer_is_keys() ? problem_.seq : problem_.kv_seq;
  }
  [[nodiscard]] Tiling tiling(std::int64_t outer, std::int64_t inner) const {
    return outer_is_keys() ? Tiling{.query_rows = inner, .key_rows = outer}
                           : Tiling{.query_rows = outer, .key_rows = inner};
  }
  /// The candidate size behind `size` (0 at first) on a side of `longest`; 0 behind the last.
  [[nodiscard]] std::int64_t behind(std::int64_t size, std::int64_t longest) const;

  Algorithm algorithm_;
  const Problem& problem_;
  std::int64_t multiple_of_;
};

}  // namespace flashsim
