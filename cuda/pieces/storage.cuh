// Numbers as memory holds them: half, bfloat16 or float, sixteen bytes at a time where they lie so.
// Arithmetic is in float: static_cast<float> and static_cast<T>, which rounds to nearest.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/base/number_types.hpp"
#include "cuda/check.hpp"

namespace flashsim {

/// Neighbours in memory that are loaded and stored together.
template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Neighbours {
  T at[kWidth];
};

inline constexpr int kVectorBytes = 16;
template <class T>
inline constexpr int kVectorWidth = kVectorBytes / static_cast<int>(sizeof(T));

/// Whether vectors can be used on rows of that many elements, one after the other from `memory`.
template <class T>
bool in_vectors(const void* memory, std::int64_t row_length) {
  return reinterpret_cast<std::uintptr_t>(memory) % kVectorBytes == 0 && row_length % kVectorWidth<T> == 0;
}

/// Stores neighbours in one instruction, which the compiler would take apart again if it weren't named.
template <class T, int kWidth>
__device__ inline void store_together(T* to, const Neighbours<T, kWidth>& v) {
  static_assert(sizeof v == sizeof(uint4) || sizeof v == sizeof(uint2), "there are stores of 8 and 16 bytes");
  using Word = std::conditional_t<sizeof v == sizeof(uint4), uint4, uint2>;
  Word word;
  memcpy(&word, &v, sizeof word);
  __stcg(reinterpret_cast<Word*>(to), word);
}

/// Calls `use` with a number of the type that stores them. Throws CudaError for one that no kernel takes.
template <class Use>
auto with_storage(NumberType type, const Use& use) {
  switch (type) {
    case NumberType::fp16: return use(__half());
    case NumberType::bf16: return use(__nv_bfloat16());
    case NumberType::fp32: return use(float());
    default: throw CudaError(cudaErrorInvalidValue, "a kernel of fp16, bf16 and fp32");
  }
}

}  // namespace flashsim
