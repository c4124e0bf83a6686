// One number from all threads of a block: within a warp by shuffles, between warps through shared memory.
#pragma once

namespace flashsim {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpsInBlock = 32;  ///< at most

/// `combine` of every thread's `value`, known to all of them; `nothing` changes nothing it is combined with.
/// The order is fixed, so the same numbers give the same bits. Every thread of the block calls it; threads
/// are whole warps. `partial` must not be in use for anything else.
template <class Combine>
__device__ float over_block(float value, float nothing, float (&partial)[kWarpsInBlock],
                            const Combine& combine) {
  const auto over_warp = [&](float x) {
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));
    }
    return x;
  };
  const unsigned warp = threadIdx.x / kWarpThreads;
  const unsigned lane = threadIdx.x % kWarpThreads;
  value = over_warp(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();  // every warp's part is there
  return over_warp(lane < blockDim.x / kWarpThreads ? partial[lane] : nothing);
}

__device__ inline float block_maximum(float value) {
  __shared__ float partial[kWarpsInBlock];
  // fmaxf passes over NaN, as a maximum of scores must: the sum of the weights finds it.
  return over_block(value, -INFINITY, partial, [](float a, float b) { return fmaxf(a, b); });
}

__device__ inline float block_sum(float value) {
  __shared__ float partial[kWarpsInBlock];
  return over_block(value, 0.0f, partial, [](float a, float b) { return a + b; });
}

}  // namespace flashsim
