// What is computed: softmax(scale · Q Kᵀ + mask) V for B batch entries and H query heads.
//
//   Q, O: [B, H, N, d]    K, V: [B, Hkv, Nkv, d]    S, P: [B, H, N, Nkv]    L: [B, H, N]
//
// Query head h reads key/value head ⌊h / (H / Hkv)⌋.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"

namespace flashsim {

/// Where the diagonal of a causal mask lies when N ≠ Nkv.
enum class CausalAlignment {
  bottom_right,  ///< query i sees keys ≤ i + Nkv − N: the last query sees every key
  top_left,      ///< query i sees keys ≤ i
};

constexpr std::string_view name_of(CausalAlignment alignment) {
  return alignment == CausalAlignment::bottom_right ? "bottom-right" : "top-left";
}
Result<CausalAlignment> causal_alignment_named(std::string_view name);

/// The storage type of that name. `what` is what the error calls it: "--dtype".
Result<NumberType> storage_type_named(const std::string& what, std::string_view name);

/// The defaults are the worked example.
struct Problem {
  std::int64_t batch = 1;       ///< B
  std::int64_t heads = 32;      ///< H
  std::int64_t kv_heads = 32;   ///< Hkv
  std::int64_t seq = 8192;      ///< N
  std::int64_t kv_seq = 8192;   ///< Nkv
  std::int64_t head_dim = 128;  ///< d
  bool causal = true;
  CausalAlignment alignment = CausalAlignment::bottom_right;
  std::optional<double> scale;  ///< 1/√d where absent
  NumberType storage = NumberType::fp16;
  /// So many rows of Q lie side by side for one query: 1, or the query heads of a group (packed_heads).
  std::int64_t rows_per_query = 1;

  [[nodiscard]] NumberType accumulation() const { return accumulation_type(storage); }
  /// The factor on Q Kᵀ.
  [[nodiscard]] double score_scale() const;
  /// The key/value head that query head `head` reads.
  [[nodiscard]] std::int64_t kv_head_of(std::int64_t head) const { return head / (heads / kv_heads); }

  /// Every dimension is at least 1 and at most kLargestDimension, and H is a multiple of Hkv.
  [[nodiscard]] Outcome validate() const;
};

/// The same problem with the query heads of each group packed into one: B, Hkv heads of G·N rows, G = H/Hkv,
/// row r of which is query ⌊r/G⌋ of the group's head r mod G. So a key/value head serves its whole group at
/// once. A problem that is packed stays as it is. G·N must fit 63 bits.
constexpr Problem packed_heads(Problem problem) {
  const std::int64_t group = problem.heads / problem.kv_heads;
  problem.heads = problem.kv_heads;
  problem.seq *= group;
  problem.rows_per_query *= group;
  return problem;
}

/// "B 1 · H 32 · N 8192 · d 128": key/value heads and length are named where they differ.
std::string shape_text(const Problem& problem);

}  // namespace flashsim
