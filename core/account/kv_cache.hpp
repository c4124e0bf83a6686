// The KV cache in closed form: a key row and a value row for every token, key/value head, layer and
// sequence. It has no N² in it and no query heads, and no algorithm of attention changes it.
#pragma once

#include <cstdint>

#include "core/account/formula.hpp"
#include "core/problem/cache_type.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// How the cache is kept.
struct CacheLayout {
  std::int64_t layers = 1;
  CacheType type = CacheType::fp16;
  std::int64_t group = kDefaultCacheGroup;  ///< G: elements that share a scale; of quantized types alone
};

/// Bytes of one row: d·c, with c the bytes of an element; quantized, the elements packed into whole bytes
/// and ⌈d/G⌉ groups' scales (and zero points).
Formula cache_row_bytes(std::int64_t head_dim, const CacheLayout& layout);

/// Bytes of a cache whose sequences have `problem.kv_seq` tokens.
struct CacheSize {
  Formula token = 0;     ///< one token of one sequence, all layers: 2·layers·Hkv·R
  Formula sequence = 0;  ///< one sequence: that, N times
  Formula batch = 0;     ///< B sequences
};

/// The cache of `problem` with these key/value heads in place of its own: Formula("Hkv", 8).
CacheSize cache_size(const Problem& problem, const CacheLayout& layout, const Formula& kv_heads);

/// What a step that makes one token reads and writes of one layer's cache.
struct CacheTraffic {
  Formula packed = 0;    ///< read: each key/value head once for all its query heads
  Formula unpacked = 0;  ///< read: each query head reads its key/value head for itself
  Formula new_rows = 0;  ///< written: the new token's key and value
};
CacheTraffic cache_traffic(const Problem& problem, const CacheLayout& layout);

}  // namespace flashsim
