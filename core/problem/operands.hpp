// The tensors that an attention kernel moves, and how many bytes a piece of each has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

enum class Operand {
  Q,          ///< queries [N, d]
  K,          ///< keys [Nkv, d]
  V,          ///< values [Nkv, d]
  S,          ///< scores [N, Nkv]
  P,          ///< probabilities [N, Nkv]
  O,          ///< output [N, d]
  dO,         ///< gradient of the output [N, d]
  dQ,         ///< gradient of the queries [N, d]
  dK,         ///< gradient of the keys [Nkv, d]
  dV,         ///< gradient of the values [Nkv, d]
  dP,         ///< gradient of the probabilities [N, Nkv]
  dS,         ///< gradient of the scores [N, Nkv]
  P_dropped,  ///< probabilities after dropout [N, Nkv]
  Z,          ///< which probabilities dropout keeps, a byte each [N, Nkv]
  L,          ///< logsumexp m + ln l [N]
  m,          ///< running maximum [N]
  l,          ///< running denominator [N]
  D,          ///< Σ dO ∘ O over a row [N]
  dQ_sum,     ///< dQ while key tiles add to it [N, d]
  O_part,     ///< output of a part of the keys [N, d], for each part
  L_part,     ///< its logsumexp [N]
  m_part,     ///< its maximum [N]
  l_part,     ///< its denominator [N]
};

inline constexpr std::array kOperands{
    Operand::Q,         Operand::K,      Operand::V,      Operand::S,      Operand::P,     Operand::O,
    Operand::dO,        Operand::dQ,     Operand::dK,     Operand::dV,     Operand::dP,    Operand::dS,
    Operand::P_dropped, Operand::Z,      Operand::L,      Operand::m,      Operand::l,     Operand::D,
    Operand::dQ_sum,    Operand::O_part, Operand::L_part, Operand::m_part, Operand::l_part};

constexpr std::string_view name_of(Operand operand) {
  constexpr std::array<std::string_view, 23> kNames{
      "Q",         "K", "V", "S", "P", "O", "dO",     "dQ",     "dK",     "dV",     "dP",    "dS",
      "P dropped", "Z", "L", "m", "l", "D", "dQ sum", "O part", "L part", "m part", "l part"};
  return kNames[static_cast<std::size_t>(operand)];
}

/// What is kept in the accumulation type: statistics, sums that aren't done and outputs of parts. Tensors
/// take the storage type.
constexpr bool is_accumulated(Operand operand) { return operand >= Operand::L; }

/// There is one for each part of the keys.
constexpr bool is_part(Operand operand) { return operand >= Operand::O_part; }

/// The shape of an operand's matrix in one head.
enum class OperandShape { query_rows, key_rows, scores, row_statistic };

constexpr OperandShape shape_of(Operand operand) {
  switch (operand) {
    case Operand::Q:
    case Operand::O:
    case Operand::dO:
    case Operand::dQ:
    case Operand::dQ_sum:
    case Operand::O_part: return OperandShape::query_rows;
    case Operand::K:
    case Operand::V:
    case Operand::dK:
    case Operand::dV: return OperandShape::key_rows;
    case Operand::S:
    case Operand::P:
    case Operand::dP:
    case Operand::dS:
    case Operand::P_dropped:
    case Operand::Z: return OperandShape::scores;
    case Operand::L:
    case Operand::m:
    case Operand::l:
    case Operand::D:
    case Operand::L_part:
    case Operand::m_part:
    case Operand::l_part: return OperandShape::row_statistic;
  }
  return OperandShape::query_rows;
}

/// Bytes of one element in HBM.
constexpr std::int64_t element_size(Operand operand, const Problem& problem) {
  if (operand == Operand::Z) return 1;
  return size_of(is_accumulated(operand) ? problem.accumulation() : problem.storage);
}

/// Bytes of the whole tensor, over all batch entries and heads (key/value heads for K and V), of one part of
/// the keys where there are several.
constexpr Bytes whole_size(Operand operand, const Problem& p) {
  const Count one = element_size(operand, p);
  switch (shape_of(operand)) {
    case OperandShape::key_rows: return Bytes(one * p.batch * p.kv_heads * p.kv_seq * p.head_dim);
    case OperandShape::query_rows: return Bytes(one * p.batch * p.heads * p.seq * p.head_dim);
    case OperandShape::scores: return Bytes(one * p.batch * p.heads * p.seq * p.kv_seq);
    case OperandShape::row_statistic: return Bytes(one * p.batch * p.heads * p.seq);
  }
  return {};
}

}  // namespace flashsim
