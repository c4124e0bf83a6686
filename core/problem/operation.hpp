// The verbs of every schedule: what can be done with a tile.
#pragma once

#include <array>
#include <string_view>

namespace flashsim {

enum class Operation {
  initialise,  ///< the starting values of O, l and m are written to HBM
  load,        ///< a tile comes from HBM onto the chip
  reset,       ///< O_i = 0, l = 0, m = −∞ on the chip; backward: the gradients that are summed there = 0
  scores,      ///< S_ij = scale · Q_i K_jᵀ (eager: unscaled)
  scale,       ///< S_ij ← scale · S_ij, where that is a pass of its own
  mask,        ///< S_ij ← −∞ where the key is not visible
  softmax,     ///< P_i = softmax(S_i) over whole rows at once
  online_softmax,  ///< tile maximum, m′ = max(m, ·), P_ij = exp(S_ij − m′), row sums
  rescale,         ///< r = exp(m − m′): l ← r l + row sums, O_i ← r O_i
  accumulate,      ///< O_i ← O_i + P_ij V_j
  finish,   ///< O_i ← O_i / l, and L = m + ln l where it is written; of `l`: L alone; of `O`: O alone
  store,    ///< a tile goes from the chip to HBM
  discard,  ///< a tile leaves the chip and nothing is written
  // Without the online softmax.
  row_maximum,  ///< m ← max(m, row maxima of S_ij)
  denominator,  ///< l ← l + row sums of exp(S_ij − m); of `P`: P_ij = exp(S_ij − m) is kept
  dropout,      ///< P_dropped = Z ∘ P / (1 − rate); backward the same of the gradient
  combine,      ///< what a part of the keys left is brought to the common maximum and added to O_i and l
  // Backward.
  row_dot,               ///< D_i = Σ dO_i ∘ O_i over each row; where P is kept, Σ dP_i ∘ P_i
  probabilities,         ///< P_ij = exp(S_ij − L_i); forward, of `l`: P_ij = exp(S_ij − m) / l
  value_gradient,        ///< dV_j ← dV_j + P_ijᵀ dO_i
  probability_gradient,  ///< dP_ij = dO_i V_jᵀ
  score_gradient,        ///< dS_ij = P_ij ∘ (dP_ij − D_i)
  query_gradient,        ///< dQ_i ← dQ_i + scale · dS_ij K_j
  key_gradient,          ///< dK_j ← dK_j + scale · dS_ijᵀ Q_i
};

inline constexpr std::array kOperations{
    Operation::initialise,     Operation::load,           Operation::reset,
    Operation::scores,         Operation::scale,          Operation::mask,
    Operation::softmax,        Operation::online_softmax, Operation::rescale,
    Operation::accumulate,     Operation::finish,         Operation::store,
    Operation::discard,        Operation::row_maximum,    Operation::denominator,
    Operation::dropout,        Operation::combine,        Operation::row_dot,
    Operation::probabilities,  Operation::value_gradient, Operation::probability_gradient,
    Operation::score_gradient, Operation::query_gradient, Operation::key_gradient};

constexpr std::string_view name_of(Operation operation) {
  constexpr std::array<std::string_view, 24> kNames{
      "initialise",     "load",           "reset",
      "scores",         "scale",          "mask",
      "softmax",        "online_softmax", "rescale",
      "accumulate",     "finish",         "store",
      "discard",        "row_maximum",    "denominator",
      "dropout",        "combine",        "row_dot",
      "probabilities",  "value_gradient", "probability_gradient",
      "score_gradient", "query_gradient", "key_gradient"};
  return kNames[static_cast<std::size_t>(operation)];
}

}  // namespace flashsim
