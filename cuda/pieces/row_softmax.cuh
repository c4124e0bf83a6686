// Softmax over whole rows of S, in place: P overwrites S, masked and normalised, and L = m + ln l comes out.
// A block takes a row. Where the row fits into shared memory it is read once and stays there for the three
// passes over it: maximum, sum of exponentials, normalisation. A longer row is read twice, and its maximum
// and sum are found together (Milakov and Gimelshein, arXiv 1805.02867).
#pragma once

#include <type_traits>

#include "core/problem/mask.hpp"
#include "core/problem/problem.hpp"
#include "cuda/pieces/block_reduce.cuh"
#include "cuda/pieces/byte_count.cuh"
#include "cuda/pieces/masking.cuh"
#include "cuda/pieces/storage.cuh"

namespace flashsim {

inline constexpr int kMostSoftmaxThreads = 512;

/// So many blocks of that size fit an SM by their registers, and more of smaller ones: a block that waits for
/// its row leaves the SM to others.
inline constexpr int kLeastSoftmaxBlocks = 3;

/// Loads that a thread has under way together while it brings a row.
inline constexpr int kLoadsAtOnce = 2;

/// exp(x). For float storage right to two units in the last place; for the narrow types relative to 2⁻²⁴ ·
/// |x|, by which a weight that is then rounded to 2⁻¹¹ or 2⁻⁸ changes nothing.
template <class T>
__device__ float exponential(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return expf(x);
  } else {
    constexpr float kLog2E = 1.44269504f;
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * kLog2E));
    return result;
  }
}

/// Scores of the row in place: [Nkv]. `kWidth` elements are moved at a time, and Nkv is a multiple of it.
/// Grid: a block a row of [B, H, N]. Dynamic shared memory: the row, where it is kept.
template <class T, int kWidth, bool kRowIsKept, bool kSubtractMax, bool kMasksFinitely, bool kCounts>
__global__ void __launch_bounds__(kMostSoftmaxThreads, kLeastSoftmaxBlocks)
    row_softmax(T* __restrict__ scores, float* __restrict__ lse, const Problem problem, OwnTraffic* traffic) {
  using Index = std::conditional_t<kRowIsKept, int, std::int64_t>;
  using Vector = Neighbours<T, kWidth>;
  extern __shared__ uint4 dynamic_shared[];
  Vector* kept = reinterpret_cast<Vector*>(dynamic_shared);

  const std::int64_t row = blockIdx.x;
  const auto keys = static_cast<Index>(problem.kv_seq);
  const auto visible = static_cast<Index>(visible_keys(problem, row % problem.seq));
  // Keys from here on weigh nothing. Under the fault every key has a score.
  const Index weighed = kMasksFinitely ? keys : visible;
  Vector* in_memory = reinterpret_cast<Vector*>(scores + row * problem.kv_seq);
  const auto first = static_cast<Index>(threadIdx.x) * kWidth;
  const auto step = static_cast<Index>(blockDim.x) * kWidth;
  ByteCount<kCounts> bytes;

  /// What stands at `key`, masked. The load itself comes first, so that several can be under way.
  const auto masked = [&](Vector s, Index key) {
    if (key + kWidth > visible) {
      const T masked_score = static_cast<T>(kMasksFinitely ? kFiniteMask : -INFINITY);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) s.at[i] = key + i < visible ? s.at[i] : masked_score;
    }
    return s;
  };
  const auto maximum = [](const Vector& s, float m) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) m = fmaxf(m, static_cast<float>(s.at[i]));
    return m;
  };
  // While nothing has been seen, 0 is subtracted: (−∞) − (−∞) would be NaN.
  const auto reference = [](float m) { return !kSubtractMax || m == -INFINITY ? 0.0f : m; };
  const auto sum = [](const Vector& s, float subtracted, float l) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) l += exponential<T>(static_cast<float>(s.at[i]) - subtracted);
    return l;
  };

  float m = -INFINITY;
  float l = 0;
  if constexpr (kRowIsKept) {
    // A thread comes back to the keys that it brought itself: no barrier but those of the reductions.
    for (Index begin = first; begin < keys; begin += kLoadsAtOnce * step) {
      Vector loaded[kLoadsAtOnce];
#pragma unroll
      for (int n = 0; n < kLoadsAtOnce; ++n) {
        const Index key = begin + n * step;
        if (key >= keys) break;
        loaded[n] = in_memory[key / kWidth];
        bytes.read(sizeof(Vector));
      }
#pragma unroll
      for (int n = 0; n < kLoadsAtOnce; ++n) {
        const Index key = begin + n * step;
        if (key >= keys) break;
        const Vector s = masked(loaded[n], key);
        kept[key / kWidth] = s;
        m = maximum(s, m);
      }
    }
    m = block_maximum(m);
    const float subtracted = reference(m);
    for (Index key = first; key < weighed; key += step) l = sum(kept[key / kWidth], subtracted, l);
  } else {
    for (Index key = first; key < keys; key += step) {
      const Vector s = masked(in_memory[key / kWidth], key);
      bytes.read(sizeof(Vector));
      const float before = m;
      m = maximum(s, m);
      if (l != 0.0f && reference(m) != reference(before)) l *= expf(reference(before) - reference(m));
      l = sum(s, reference(m), l);
    }
    const float of_thread = reference(m);
    m = block_maximum(m);
    if (l != 0.0f) l *= expf(of_thread - reference(m));
  }
  l = block_sum(l);

  if (!kSubtractMax && m != -INFINITY) m = 0;
  const bool empty = m == -INFINITY && l == 0.0f;
  if (threadIdx.x == 0) {
    lse[row] = empty ? -INFINITY : m + logf(l);
    bytes.wrote(sizeof(float));
  }

  const float subtracted = reference(m);
  const float inverse = 1.0f / l;  // with the maximum subtracted l is 1 or more, and the inverse a number
  const auto weight = [&](float s) {
    if (s == -INFINITY) return kNoWeight;
    const float p = exponential<T>(s - subtracted);
    return kSubtractMax ? p * inverse : p / l;
  };
  for (Index key = first; key < keys; key += step) {
    Vector p;
    if (key < weighed) {
      if constexpr (kRowIsKept) {
        p = kept[key / kWidth];
      } else {
        p = masked(in_memory[key / kWidth], key);
        bytes.read(sizeof(Vector));
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) p.at[i] = static_cast<T>(weight(static_cast<float>(p.at[i])));
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) p.at[i] = static_cast<T>(kNoWeight);
    }
    in_memory[key / kWidth] = p;
    bytes.wrote(sizeof(Vector));
  }
  bytes.report(traffic);
}

}  // namespace flashsim
