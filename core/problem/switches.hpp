// The parts of attention that can be switched off or broken, to see what each is for.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"

namespace flashsim {

/// Faults that real kernels have had.
enum class Fault {
  none,
  rescale_l_only,    ///< r multiplies l, and O keeps the old reference
  rescale_o_only,    ///< r multiplies O, and l keeps the old reference
  inverted_rescale,  ///< r = exp(m′ − m); nothing is rescaled on a row's first tile, as in the right way
  reset_per_tile,    ///< every tile starts from m = −∞, l = 0, O = 0
  finite_mask,       ///< a masked score is −10⁴ instead of −∞
  unmasked_padding,  ///< the last key tile is filled up with zero keys and values that nothing masks
};

/// Which algorithms a fault means something for.
enum class FaultScope {
  every,
  tiled,   ///< those that fill up the last key tile
  online,  ///< those with an online softmax
};

struct FaultFacts {
  Fault fault;
  std::string_view name;     ///< on the command line and in JSON
  std::string_view summary;  ///< one line for `list`
  std::string_view why;      ///< one sentence: what goes wrong
  FaultScope scope;
};

inline constexpr std::array kFaults{
    FaultFacts{
        Fault::rescale_l_only, "rescale-l-only", "r multiplies l alone",
        "l was brought to the new maximum and O was not, so what O held from earlier tiles weighs too much "
        "wherever the maximum rose",
        FaultScope::online},
    FaultFacts{Fault::rescale_o_only, "rescale-o-only", "r multiplies O alone",
               "O was brought to the new maximum and l was not, so the denominator is too large wherever the "
               "maximum rose",
               FaultScope::online},
    FaultFacts{
        Fault::inverted_rescale, "inverted-rescale", "r = exp(m′ − m)",
        "r was exp(m′ − m) instead of exp(m − m′), so earlier tiles grew where they should have shrunk",
        FaultScope::online},
    FaultFacts{Fault::reset_per_tile, "reset-per-tile", "m, l and O start anew at every key tile",
               "the state was reset at every key tile, so that only the last visited tile is left",
               FaultScope::online},
    FaultFacts{
        Fault::finite_mask, "finite-mask", "masked scores are −10⁴ instead of −∞",
        "a masked key has the score −10⁴, which takes part wherever the visible scores are not far above it",
        FaultScope::every},
    FaultFacts{Fault::unmasked_padding, "unmasked-padding",
               "the last key tile is padded with zero keys that nothing masks",
               "the keys that fill up the last tile have the score 0 and were not masked, so the denominator "
               "counts them",
               FaultScope::tiled},
};

constexpr std::string_view name_of(Fault fault) {
  for (const FaultFacts& facts : kFaults) {
    if (facts.fault == fault) return facts.name;
  }
  return "none";
}

/// The fault of that name. Errors: unknown.
Result<Fault> fault_named(std::string_view name);

struct Switches {
  bool subtract_max = true;  ///< off: p = exp(s), and no running maximum is kept
  bool rescale = true;       ///< off: r = 1 for l and O, whatever the maximum does, or that of a part is
  Fault fault = Fault::none;
  bool accumulate_in_storage = false;  ///< row sum and PV are rounded to the storage type at every addition

  [[nodiscard]] bool broken() const {
    return !subtract_max || !rescale || fault != Fault::none || accumulate_in_storage;
  }
};

/// In one sentence, why a run with these switches can be wrong; "" where nothing is switched.
std::string why_broken(const Switches& switches);

/// Errors: a switch that means nothing for the algorithm.
Outcome check_switches(const Switches& switches, Algorithm algorithm);

}  // namespace flashsim
