// Into how many parts split-kv takes the keys where nobody says: enough for the thread blocks to fill the
// SMs, and no more. The heuristic of the released FlashAttention's split kernel, whose reason stands in Dao
// et al., Flash-Decoding for long-context inference (2023).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/count.hpp"
#include "core/base/result.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

/// As it is asked for: so many, or `auto`.
struct SplitsRequest {
  std::optional<std::int64_t> count;  ///< absent: auto
};

/// "auto", or a whole number from 1. `name` is what the error calls it: "--splits".
Result<SplitsRequest> parse_splits(const std::string& name, const std::string& text);

struct SplitChoice {
  std::int64_t splits = 1;  ///< S
  bool automatic = false;
  std::int64_t key_tiles = 1;  ///< Tc
  Count blocks;                ///< of one part, over all walks
  std::int64_t sms = 1;
  std::int64_t most = 1;  ///< the largest S that was looked at: min(128, SMs, Tc)
  double best = 1;        ///< the best wave efficiency up to there

  /// w / ⌈w⌉ with w = blocks·S / SMs: the share of SMs at work, over all waves.
  [[nodiscard]] double efficiency() const;
  /// The blocks fill 80 % of the SMs without a split.
  [[nodiscard]] bool filled() const;
  /// Key tiles of a part: ⌈Tc / S⌉.
  [[nodiscard]] std::int64_t tiles_a_split() const { return (key_tiles - 1) / splits + 1; }
};

/// No split where the blocks already fill 80 % of the SMs; else the smallest S up to min(128, SMs, Tc) whose
/// wave efficiency is at least 85 % of the best. An S with the same ⌈Tc/S⌉ as S − 1 only adds empty parts and
/// isn't looked at. `problem` is as it was asked for, not packed.
SplitChoice choose_splits(const Problem& problem, Tiling tiling, std::int64_t sms, SplitsRequest request);

}  // namespace flashsim
