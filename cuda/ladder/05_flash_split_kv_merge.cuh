// The end of a block of 05: its groups of warps have each seen other keys of the same rows, and their states
// are merged through shared memory. m, l and O of a group are those of its own maximum.
#pragma once

#include <cstdint>

#include "cuda/pieces/fragment_softmax.cuh"
#include "cuda/pieces/masked_values.cuh"
#include "cuda/pieces/storage.cuh"

namespace flashsim::split_kv {

/// The packed rows of a query tile: row r of it is a query of one of the group's heads (packed_heads). It
/// always divides, and so takes fewer registers than pieces/packed_rows.cuh.
class PackedRows {
 public:
  __device__ PackedRows(std::int64_t first_row, unsigned group)
      : first_query_(first_row / group),
        first_head_(static_cast<unsigned>(first_row % group)),
        group_(group) {}

  __device__ std::int64_t query(int row) const { return first_query_ + (first_head_ + row) / group_; }
  /// Of its row in [B, H, N], for a key/value head `walk` of all batch entries.
  __device__ std::int64_t place(int row, std::int64_t walk, std::int64_t queries) const {
    return (walk * group_ + (first_head_ + row) % group_) * queries + query(row);
  }

 private:
  std::int64_t first_query_;
  unsigned first_head_, group_;
};

/// m, l and O [kGroups, kRows, kDepth] of a block's groups in shared memory, in float32.
template <int kDepth, int kRows, int kGroups>
class GroupStates {
 public:
  static constexpr int kRowFloats = kDepth + 8;  ///< four rows that are written together lie in all banks
  static constexpr int kBytes = 4 * kGroups * kRows * (kRowFloats + 2);

  __device__ explicit GroupStates(void* shared)
      : o_(static_cast<float*>(shared)), m_(o_ + kGroups * kRows * kRowFloats), l_(m_ + kGroups * kRows) {}

  /// A warp's state. Its rows are those from `row` on.
  template <int kFragments>
  __device__ void put(int group, int row, const Accumulators<kFragments, kDepth / kFragmentKeys>& o,
                      const FragmentRows<kFragments>& rows) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    over_rows<kFragments>([&](int f, int half) {
      const int at = group * kRows + row + f * kFragmentRows + half * 8 + lane / 4;
      const float l = sum_of_four_lanes(rows.of[f][half].l);
      if (lane % 4 == 0) {
        m_[at] = rows.of[f][half].m;
        l_[at] = l;
      }
      float* const to = o_ + at * kRowFloats + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kDepth / kFragmentKeys; ++n) {
        *reinterpret_cast<float2*>(to + n * kFragmentKeys) =
            make_float2(o[f][n][2 * half], o[f][n][2 * half + 1]);
      }
    });
  }

  /// Four columns of a row's O over all groups, divided by l, from `column` on. Gives the row's L.
  __device__ float merge(int row, int column, Neighbours<float, 4>& o) const {
    OnlineRow all;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) all.m = fmaxf(all.m, m_[group * kRows + row]);
    const float reference = all.m == -INFINITY ? 0.0F : all.m;
    o = {};
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int at = group * kRows + row;
      const float factor = PowersOfTwo::power(m_[at] - reference);
      all.l = fmaf(factor, l_[at], all.l);
      const float4 of_group = *reinterpret_cast<const float4*>(o_ + at * kRowFloats + column);
      o.at[0] = fmaf(factor, of_group.x, o.at[0]);
      o.at[1] = fmaf(factor, of_group.y, o.at[1]);
      o.at[2] = fmaf(factor, of_group.z, o.at[2]);
      o.at[3] = fmaf(factor, of_group.w, o.at[3]);
    }
    const float divisor = is_empty(all) ? 1.0F : all.l;
#pragma unroll
    for (float& each : o.at) each /= divisor;
    return logsumexp<PowersOfTwo>(all);
  }

 private:
  float* o_;
  float* m_;
  float* l_;
};

/// Adds what isn't finite in four columns of V, of the keys first … last − 1, to a row of O that sees them:
/// products left it out (take_out). Their weight is never 0, so that ∞ stays ∞ however small it is.
template <class T>
__device__ inline void add_infinities(Neighbours<float, 4>& o, const T* v, int columns, int column,
                                      std::int64_t first, std::int64_t last) {
#pragma unroll 1
  for (std::int64_t key = first; key < last; ++key) {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if (column + x >= columns) continue;
      const auto value = static_cast<float>(v[key * columns + column + x]);
      if (!is_finite(value)) o.at[x] += value;
    }
  }
}

/// Stores four columns from `column` on of a row of memory, as far as there are so many.
template <class T>
__device__ inline void store_columns(T* row, int column, int columns, const Neighbours<float, 4>& values,
                                     bool together) {
  if (together) {
    Neighbours<T, 4> rounded;
#pragma unroll
    for (int x = 0; x < 4; ++x) rounded.at[x] = static_cast<T>(values.at[x]);
    store_together(row + column, rounded);
  } else {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if (column + x < columns) row[column + x] = static_cast<T>(values.at[x]);
    }
  }
}

}  // namespace flashsim::split_kv
