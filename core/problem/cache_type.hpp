// The types in which a KV cache can be kept. They are the storage types and two more, int8 and int4, that
// are quantized: a row is cut into groups of elements, and each group has a scale (and int4 a zero point)
// in fp16 beside it.
//
// A row is one token's key, or value, of one head: d elements. Groups lie along d and don't reach over
// rows, and the last of a row may be ragged. One group a row, so per token and head, is what Atom (arXiv
// 2310.19102) and QServe (arXiv 2405.04532) keep for heads of 128; FlexGen (arXiv 2303.06865) has groups
// of 64 and KIVI (arXiv 2402.02750) of 32, with its keys grouped along tokens: as many scales, where groups
// are full.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"

namespace flashsim {

enum class CacheType { fp8, fp16, bf16, fp32, fp64, int8, int4 };

struct CacheTypeFacts {
  CacheType type;
  std::string_view name;
  std::int64_t bits;         ///< of one element
  std::int64_t group_bytes;  ///< of what stands beside a group; 0 where the type isn't quantized

  [[nodiscard]] constexpr bool quantized() const { return group_bytes > 0; }
};

inline constexpr std::array kCacheTypes{
    CacheTypeFacts{CacheType::fp8, "fp8", 8, 0},    CacheTypeFacts{CacheType::fp16, "fp16", 16, 0},
    CacheTypeFacts{CacheType::bf16, "bf16", 16, 0}, CacheTypeFacts{CacheType::fp32, "fp32", 32, 0},
    CacheTypeFacts{CacheType::fp64, "fp64", 64, 0}, CacheTypeFacts{CacheType::int8, "int8", 8, 2},
    CacheTypeFacts{CacheType::int4, "int4", 4, 4},
};

constexpr const CacheTypeFacts& facts_of(CacheType type) {
  return kCacheTypes[static_cast<std::size_t>(type)];
}

/// Elements of a group where nobody says otherwise.
inline constexpr std::int64_t kDefaultCacheGroup = 128;

/// The cache that is kept as tensors are stored.
CacheType cache_type_of(NumberType storage);

/// The cache type of that name. Errors: an unknown name, with the nearest one.
Result<CacheType> cache_type_named(std::string_view name);

}  // namespace flashsim
