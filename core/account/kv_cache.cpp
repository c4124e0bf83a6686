#include "core/account/kv_cache.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kBitsPerByte = 8;

std::int64_t ceiling(std::int64_t number, std::int64_t divisor) {
  return number / divisor + (number % divisor != 0 ? 1 : 0);
}

Formula row_symbol(const Problem& problem, const CacheLayout& layout) {
  return {"R", cache_row_bytes(problem.head_dim, layout).value()};
}

}  // namespace

Formula cache_row_bytes(std::int64_t head_dim, const CacheLayout& layout) {
  const CacheTypeFacts& facts = facts_of(layout.type);
  const Formula depth("d", head_dim);
  if (!facts.quantized()) return depth * Formula("c", facts.bits / kBitsPerByte);
  const std::int64_t in_a_byte = kBitsPerByte / facts.bits;
  const Formula packed = in_a_byte == 1 ? depth : Formula("⌈d/2⌉", ceiling(head_dim, in_a_byte));
  return packed + Formula("⌈d/G⌉", ceiling(head_dim, layout.group)) * Formula(facts.group_bytes);
}

CacheSize cache_size(const Problem& problem, const CacheLayout& layout, const Formula& kv_heads) {
  const Formula layers = Formula(2) * Formula("layers", layout.layers);
  const Formula tokens("N", problem.kv_seq);
  const Formula row = row_symbol(problem, layout);
  return {.token = layers * kv_heads * row,
          .sequence = layers * kv_heads * tokens * row,
          .batch = layers * Formula("B", problem.batch) * kv_heads * tokens * row};
}

CacheTraffic cache_traffic(const Problem& problem, const CacheLayout& layout) {
  const Formula sequences = Formula(2) * Formula("B", problem.batch);
  const Formula kv_heads("Hkv", problem.kv_heads);
  const Formula tokens("N", problem.kv_seq);
  const Formula row = row_symbol(problem, layout);
  return {.packed = sequences * kv_heads * tokens * row,
          .unpacked = sequences * Formula("H", problem.heads) * tokens * row,
          .new_rows = sequences * kv_heads * row};
}

}  // namespace flashsim
