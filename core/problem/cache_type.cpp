#include "core/problem/cache_type.hpp"

#include <vector>

#include "core/base/nearest.hpp"

namespace flashsim {

CacheType cache_type_of(NumberType storage) {
  switch (storage) {
    case NumberType::fp8: return CacheType::fp8;
    case NumberType::fp16: return CacheType::fp16;
    case NumberType::bf16: return CacheType::bf16;
    case NumberType::fp32: return CacheType::fp32;
    case NumberType::fp64: return CacheType::fp64;
  }
  return CacheType::fp16;
}

Result<CacheType> cache_type_named(std::string_view name) {
  std::vector<std::string> known;
  for (const CacheTypeFacts& facts : kCacheTypes) {
    if (facts.name == name) return facts.type;
    known.emplace_back(facts.name);
  }
  return unknown_name("cache type", name, known);
}

}  // namespace flashsim
