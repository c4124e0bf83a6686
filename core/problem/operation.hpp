// The verbs of every schedule: what can be done with a tile.
#pragma once

#include <array>
#include <string_view>

namespace flashsim {

enum class Operation {
  initialise,      ///< the starting values of O, l and m are written to HBM
  load,            ///< a tile comes from HBM onto the chip
  reset,           ///< O_i = 0, l = 0, m = −∞ on the chip
  scores,          ///< S_ij = scale · Q_i K_jᵀ (eager: unscaled)
  scale,           ///< S_ij ← scale · S_ij, where that is a pass of its own
  mask,            ///< S_ij ← −∞ where the key is not visible
  softmax,         ///< P_i = softmax(S_i) over whole rows at once
  online_softmax,  ///< tile maximum, m′ = max(m, ·), P_ij = exp(S_ij − m′), row sums
  rescale,         ///< r = exp(m − m′): l ← r l + row sums, O_i ← r O_i
  accumulate,      ///< O_i ← O_i + P_ij V_j
  finish,          ///< O_i ← O_i / l, and L = m + ln l where it is written
  store,           ///< a tile goes from the chip to HBM
  discard,         ///< a tile leaves the chip and nothing is written
};

inline constexpr std::array kOperations{Operation::initialise, Operation::load,           Operation::reset,
                                        Operation::scores,     Operation::scale,          Operation::mask,
                                        Operation::softmax,    Operation::online_softmax, Operation::rescale,
                                        Operation::accumulate, Operation::finish,         Operation::store,
                                        Operation::discard};

constexpr std::string_view name_of(Operation operation) {
  constexpr std::array<std::string_view, 13> kNames{
      "initialise",     "load",    "reset",      "scores", "scale", "mask",   "softmax",
      "online_softmax", "rescale", "accumulate", "finish", "store", "discard"};
  return kNames[static_cast<std::size_t>(operation)];
}

}  // namespace flashsim
