#include "core/study/nothing_broke.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// Of the switches that touch the state between key tiles.
std::string between_tiles(const RunPlan& plan) {
  if (plan.problem.kv_seq <= plan.tiling.key_rows) {
    return fmt::format("one key tile holds all {} keys, so there is no state to bring along",
                       plan.problem.kv_seq);
  }
  return "no row's maximum rose far enough from one key tile to the next to be told from rounding";
}

std::string of_fault(const RunPlan& plan) {
  const Problem& p = plan.problem;
  switch (plan.switches.fault) {
    case Fault::finite_mask: return p.causal ? "no row's visible scores come near −10⁴" : "nothing is masked";
    case Fault::unmasked_padding:
      if (p.kv_seq % plan.tiling.key_rows == 0) {
        return fmt::format("{} keys fill tiles of {}, so nothing is padded", p.kv_seq, plan.tiling.key_rows);
      }
      return "no row that sees the last key tile is moved by its padding further than rounding may";
    default: return between_tiles(plan);
  }
}

}  // namespace

std::string why_nothing_broke(const RunPlan& plan, const Magnitudes& magnitudes) {
  const Switches& switches = plan.switches;
  if (!switches.subtract_max) {
    const double most = plan.compute == NumberType::fp64 ? 709.8 : 88.7;
    if (magnitudes.score > most) {  // of either sign
      return fmt::format(
          "no row's exponentials overflow or all vanish, though a score is {} in size and {} holds exp(s) up "
          "to s = {}",
          three_digits(magnitudes.score), name_of(plan.compute), most);
    }
    return fmt::format("scores of at most {} are small enough for exp(s), which {} holds up to s = {}",
                       three_digits(magnitudes.score), name_of(plan.compute), most);
  }
  if (switches.fault != Fault::none) return of_fault(plan);
  if (!switches.rescale) return between_tiles(plan);
  if (switches.accumulate_in_storage)
    return "the sums are short enough that rounding each addition is within the tolerance";
  return "";
}

}  // namespace flashsim
