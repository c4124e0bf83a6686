// The tensors that an attention kernel moves, and how many bytes a piece of each has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

enum class Operand {
  Q,  ///< queries [N, d]
  K,  ///< keys [Nkv, d]
  V,  ///< values [Nkv, d]
  S,  ///< scores [N, Nkv]
  P,  ///< probabilities [N, Nkv]
  O,  ///< output [N, d]
  L,  ///< logsumexp m + ln l [N]
  m,  ///< running maximum [N]
  l,  ///< running denominator [N]
};

inline constexpr std::array kOperands{Operand::Q, Operand::K, Operand::V, Operand::S, Operand::P,
                                      Operand::O, Operand::L, Operand::m, Operand::l};

constexpr std::string_view name_of(Operand operand) {
  constexpr std::array<std::string_view, 9> kNames{"Q", "K", "V", "S", "P", "O", "L", "m", "l"};
  return kNames[static_cast<std::size_t>(operand)];
}

/// Statistics (L, m, l) are kept in the accumulation type, tensors in the storage type.
constexpr bool is_statistic(Operand operand) { return operand >= Operand::L; }

/// Bytes of one element in HBM.
constexpr std::int64_t element_size(Operand operand, const Problem& problem) {
  return size_of(is_statistic(operand) ? problem.accumulation() : problem.storage);
}

/// Bytes of the whole tensor, over all batch entries and heads (key/value heads for K and V).
constexpr Bytes whole_size(Operand operand, const Problem& p) {
  const Count one = element_size(operand, p);
  switch (operand) {
    case Operand::K:
    case Operand::V: return Bytes(one * p.batch * p.kv_heads * p.kv_seq * p.head_dim);
    case Operand::Q:
    case Operand::O: return Bytes(one * p.batch * p.heads * p.seq * p.head_dim);
    case Operand::S:
    case Operand::P: return Bytes(one * p.batch * p.heads * p.seq * p.kv_seq);
    case Operand::L:
    case Operand::m:
    case Operand::l: return Bytes(one * p.batch * p.heads * p.seq);
  }
  return {};
}

}  // namespace flashsim
