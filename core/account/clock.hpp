// The clock: how long a thread block takes for one beat of its walk (what it does for one tile), from what
// the beat asks of each unit of an SM and from what the units do in a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/account/tally.hpp"
#include "core/base/result.hpp"
#include "core/problem/habits.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// What is asked of the units of an SM.
struct Demand {
  double products = 0;      ///< FLOPs of matrix products
  double pointwise = 0;     ///< other operations, on the FMA units
  double exponentials = 0;  ///< on the special-function units
  double shared_bytes = 0;  ///< in and out of shared memory
};

/// The demand of some work. P is brought to the storage type once more for every exponential.
Demand demand_of(const Work& work, double shared_bytes);

/// Seconds that each unit needs for a demand.
struct UnitTimes {
  double tensor = 0;
  double fma = 0;
  double exponential = 0;
  double sram = 0;
};

/// Elements that lanes load from shared memory for each multiply-add, where a lane has a tile of lanes.rows
/// by `side`. The operand of a row, which all lanes of the row load alike, costs half of what the other does.
constexpr double operands_a_product(const LaneTile& lanes, std::int64_t side) {
  return 1 / static_cast<double>(lanes.rows) + 0.5 / static_cast<double>(side);
}

/// Of the shorter of two that overlap (products and softmax, arithmetic and loads of fragments) so much isn't
/// hidden under the longer.
inline constexpr double kUnhidden = 0.19;

/// Seconds of two things of which one hides under the other, all but a share of the shorter.
double overlapping(double a, double b, double unhidden = kUnhidden);

class Clock {
 public:
  /// Errors: the machine has no rate for the storage type, or for float32 where the kernel's products run on
  /// the FMA units, or none for exponentials.
  static Result<Clock> of(const Machine& machine, const Problem& problem, const Habits& habits = {});

  /// On one SM, each unit by itself.
  [[nodiscard]] UnitTimes on_one_sm(const Demand& demand) const;
  /// A block that has an SM for itself.
  [[nodiscard]] double alone(const Demand& demand) const;
  /// The unit that the demand keeps busy for longest: so long the block holds up the others of its SM. Of a
  /// kernel that multiplies fragments all that it takes.
  [[nodiscard]] double busiest(const Demand& demand) const;

  /// Matrix products run on tensor units, and not on the FMA units that softmax needs.
  [[nodiscard]] bool has_tensor_units() const { return tensor_; }
  /// FLOP/s of the whole machine in the storage type, as the machine's file has it.
  [[nodiscard]] double peak() const { return peak_; }

 private:
  bool tensor_ = false;
  bool lanes_ = false;         ///< operands pass from shared memory through registers
  bool fragments_ = false;     ///< likewise, to the tensor units
  double unhidden_loads_ = 0;  ///< of loads from shared memory and arithmetic, whichever is shorter
  double too_few_warps_ = 1;   ///< a block alone takes so much longer
  Overlap overlap_{};
  double peak_ = 0;
  // Of one SM, in a second.
  double products_ = 0;
  double pointwise_ = 0;
  double exponentials_ = 0;
  double shared_ = 0;
};

}  // namespace flashsim
