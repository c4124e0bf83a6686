// The figures of an account, in the one form that the closed forms predict and the ledger counts, so
// that the two can be held against each other line by line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/problem/operands.hpp"
#include "core/problem/operation.hpp"

namespace flashsim {

/// Bytes in one direction and the other, seen from the memory: read out of it, written into it.
struct Flow {
  Bytes read;
  Bytes written;
  [[nodiscard]] constexpr Bytes total() const { return read + written; }
  constexpr Flow& operator+=(Flow other) {
    read += other.read;
    written += other.written;
    return *this;
  }
};

/// Arithmetic, by what it is for. Counted for the valid entries of visited tiles.
struct Work {
  Flops products;      ///< the matrix products: 2·d an entry each
  Flops scale;         ///< 1 an entry, and 1 where dropout scales what it keeps
  Flops mask;          ///< 1 an entry of a tile that holds a masked pair (and the whole tile is looked at)
  Flops softmax;       ///< 3 an entry: comparison, subtraction, sum (and 1 division where P is normalised);
                       ///< backward its gradient: P again, D, P ∘ (dP − D)
  Flops rescale;       ///< online: O and l times r, and the row sum added: d + 2 a row; a part of the keys
                       ///< weighed and added to O and l: 2·d + 2 a row
  Flops normalise;     ///< O divided by l: d a row; m + ln l added: 1 a row
  Count exponentials;  ///< 1 an entry each time it is taken, and 1 a row for r or the weight of a part
};

struct KernelLaunch {
  std::string name;
  Count blocks;        ///< thread blocks over all batch entries and heads, in all launches
  Count launches = 1;  ///< one after another, each for all heads
};

struct Tally {
  std::array<Flow, kOperands.size()> hbm;      ///< HBM traffic in the papers' model, by tensor
  std::array<Flow, kOperands.size()> initial;  ///< of HBM traffic: starting values, lines of their own
  std::array<Flow, kOperands.size()> sm;       ///< what crosses into and out of the SMs
  std::array<Flow, kOperations.size()> sram;   ///< on-chip traffic, by operation
  Work work;
  Bytes peak_allocated;  ///< the most that is alive above the inputs
  std::vector<KernelLaunch> kernels;
  Count steps;  ///< of one head

  [[nodiscard]] Flow& hbm_of(Operand o) { return hbm[static_cast<std::size_t>(o)]; }
  [[nodiscard]] const Flow& hbm_of(Operand o) const { return hbm[static_cast<std::size_t>(o)]; }
  [[nodiscard]] Flow& initial_of(Operand o) { return initial[static_cast<std::size_t>(o)]; }
  [[nodiscard]] const Flow& initial_of(Operand o) const { return initial[static_cast<std::size_t>(o)]; }
  [[nodiscard]] Flow& sm_of(Operand o) { return sm[static_cast<std::size_t>(o)]; }
  [[nodiscard]] const Flow& sm_of(Operand o) const { return sm[static_cast<std::size_t>(o)]; }
  [[nodiscard]] Flow& sram_of(Operation o) { return sram[static_cast<std::size_t>(o)]; }
  [[nodiscard]] const Flow& sram_of(Operation o) const { return sram[static_cast<std::size_t>(o)]; }

  /// All HBM traffic, the starting values included.
  [[nodiscard]] Flow hbm_total() const;
  [[nodiscard]] Flow sm_total() const;
  [[nodiscard]] Flow sram_total() const;
  /// Some figure left 64 bits.
  [[nodiscard]] bool overflowed() const;
};

/// One figure of a tally: its name, as a path ("hbm.K.read_bytes"), and its value.
struct Figure {
  std::string name;
  Count value;
};

/// Every figure of a tally, in a fixed order.
std::vector<Figure> figures_of(const Tally& tally);

}  // namespace flashsim
