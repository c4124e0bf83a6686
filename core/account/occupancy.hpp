// What a thread block keeps on the chip, and how many blocks that leaves room for on a machine.
#pragma once

#include <string>
#include <vector>

#include "core/account/tally.hpp"
#include "core/base/units.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

/// A tile that lives in shared memory or in registers.
struct OnChipTile {
  std::string name;  ///< "Q_i"
  Bytes size;
};

/// What one thread block of a kernel keeps on the chip.
struct Footprint {
  std::vector<OnChipTile> shared_memory;
  std::vector<OnChipTile> registers;
  [[nodiscard]] Bytes shared_total() const;
  [[nodiscard]] Bytes register_total() const;
};

/// The footprint of a block of `kernel`, one of the names in the tally of `algorithm`. Operand tiles of
/// the matrix products lie in shared memory in the storage type; accumulators (S_ij, O_i), P_ij and the
/// statistics lie in registers. A kernel that streams (softmax, scale, mask, deltas, combine …) keeps no
/// tile.
Footprint footprint_of(Algorithm algorithm, std::string_view kernel, const Problem& problem, Tiling tiling);

struct Occupancy {
  std::string kernel;
  Footprint footprint;
  Count blocks;        ///< over all batch entries and heads
  Count launches = 1;  ///< that the blocks come in
  std::int64_t blocks_per_sm = 1;
  double waves = 0;                 ///< blocks / (SMs · blocks per SM), not rounded, of all launches
  double sm_share = 0;              ///< SMs that get a block of a launch, of all
  bool registers_overflow = false;  ///< one block's registers exceed the SM's: the rest would spill
};

/// Blocks per SM are limited by shared memory (with what the hardware keeps back for each block), by
/// registers and by the machine's own limit. `shared_memory` is the limit of a block where it isn't the
/// machine's.
Occupancy occupancy_of(const KernelLaunch& launch, Footprint footprint, const Machine& machine,
                       Bytes shared_memory);

}  // namespace flashsim
