// Whether a tensor holds a NaN or an infinity, found without leaving the device.
#pragma once

#include "cuda/pieces/storage.cuh"

namespace flashsim {

inline constexpr int kCheckThreads = 256;

/// Sets `found` where one of the `count` elements isn't finite. `found` is 0 before.
template <class T, int kWidth>
__global__ void __launch_bounds__(kCheckThreads)
    find_not_finite(const T* __restrict__ elements, std::int64_t count, int* found) {
  const auto* vectors = reinterpret_cast<const Neighbours<T, kWidth>*>(elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kCheckThreads;
  bool finite = true;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kCheckThreads + threadIdx.x;
       i < count / kWidth; i += step) {
    const Neighbours<T, kWidth> v = vectors[i];
#pragma unroll
    for (int x = 0; x < kWidth; ++x) finite = finite && fabsf(static_cast<float>(v.at[x])) < INFINITY;
  }
  if (!finite) *found = 1;  // whoever writes writes the same
}

}  // namespace flashsim
