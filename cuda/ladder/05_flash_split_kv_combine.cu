// The second kernel of 05: L = logsumexp of the parts' L_s, O = Σ exp(L_s − L) O_s. A part that saw no key
// has L_s = −∞ and weighs nothing; where all are such, O is 0.
#include <cfloat>

#include "cuda/ladder/05_flash_split_kv_kernels.hpp"
#include "cuda/pieces/storage.cuh"

namespace flashsim::split_kv {
namespace {

constexpr int kWarps = 8;
constexpr int kMostDepth = 256;

/// exp(lse − reference). Whatever saw a key weighs something, so that ∞ stays ∞ however small its weight is.
__device__ inline float weight_of_part(float lse, float reference) {
  const float weight = expf(lse - reference);
  return weight == 0 && lse != -INFINITY ? FLT_MIN : weight;
}
__device__ inline float reference_of(float m) { return m == -INFINITY ? 0.0F : m; }

/// A warp's share of a row's parts: their m and l, and the lane's kWidth columns of their O.
template <int kWidth>
struct Share {
  static constexpr int kAtOnce = 4;  ///< parts whose L and O are loaded together
  OnlineRow state;
  Neighbours<float, kWidth> o = {};

  /// Takes parts first, first + step …, kAtOnce of them. `row` is the row of part 0 among those of all parts,
  /// which are `stride` rows apart.
  __device__ void take(const CombineArguments& args, std::int64_t row, std::int64_t stride, int column,
                       int first, int step) {
    Neighbours<float, kWidth> o_part[kAtOnce];
    float lse[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int s = first + i * step;
      const std::int64_t at = row + s * stride;
      lse[i] = s < args.splits ? __ldcg(args.lse_part + at) : -INFINITY;
      o_part[i] = {};
      if (s < args.splits && column < args.head_dim) {
        o_part[i] =
            *reinterpret_cast<const Neighbours<float, kWidth>*>(args.o_part + at * args.head_dim + column);
      }
    }
    const float before = state.m;
#pragma unroll
    for (const float each : lse) state.m = fmaxf(state.m, each);
    const float reference = reference_of(state.m);
    scale(weight_of_part(before, reference));
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float weight = weight_of_part(lse[i], reference);
      state.l += weight;
#pragma unroll
      for (int x = 0; x < kWidth; ++x) o.at[x] = fmaf(weight, o_part[i].at[x], o.at[x]);
    }
  }

 private:
  __device__ void scale(float factor) {
    state.l *= factor;
#pragma unroll
    for (float& each : o.at) each *= factor;
  }
};

/// What the warps of a block found of their rows.
struct Shares {
  float m[kWarps], l[kWarps];
  float o[kWarps][kMostDepth];

  /// Of the row whose first warp is `warp`.
  __device__ OnlineRow whole(int warp, int warps) const {
    OnlineRow row;
    for (int n = warp; n < warp + warps; ++n) row.m = fmaxf(row.m, m[n]);
    for (int n = warp; n < warp + warps; ++n) row.l += factor(n, row) * l[n];
    return row;
  }
  /// Brings a warp's numbers to the maximum of its whole row.
  __device__ float factor(int warp, const OnlineRow& row) const {
    return weight_of_part(m[warp], reference_of(row.m));
  }
};

/// A block has kWarps warps and kWarps / warps_a_row rows. Lanes have kWidth neighbouring columns each.
template <class T, int kWidth>
__global__ void __launch_bounds__(32 * kWarps) combine(const __grid_constant__ CombineArguments args) {
  __shared__ Shares shares;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = args.warps_a_row;
  const std::int64_t walk = blockIdx.x / args.blocks_a_head;
  const std::int64_t first_row = std::int64_t{blockIdx.x % args.blocks_a_head} * (kWarps / warps);
  const std::int64_t stride = args.seq * args.group;  // rows of a key/value head
  const int rows = static_cast<int>(min(stride - first_row, std::int64_t{kWarps / warps}));
  const int row = warp / warps;  // of the block
  const PackedRows packed(first_row, args.group);
  const int columns = args.head_dim;

  if (row < rows) {
    const std::int64_t of_part_0 = walk * args.splits * stride + first_row + row;
    for (int from = 0; from < columns; from += 32 * kWidth) {
      const int column = from + kWidth * lane;
      Share<kWidth> share;
#pragma unroll 1
      for (int s = warp % warps; s < args.splits; s += share.kAtOnce * warps) {
        share.take(args, of_part_0, stride, column, s, warps);
      }
#pragma unroll
      for (int x = 0; x < kWidth; ++x) shares.o[warp][column + x] = share.o.at[x];
      if (lane == 0) {
        shares.m[warp] = share.state.m;
        shares.l[warp] = share.state.l;
      }
    }
  }
  __syncthreads();  // All shares are there.
  // L of the block's rows in one store: a sector crosses once for each store that touches it.
  if (threadIdx.x < rows) {
    const auto own = static_cast<int>(threadIdx.x);
    args.lse[packed.place(own, walk, args.seq)] = logsumexp(shares.whole(own * warps, warps));
  }
  if (row >= rows || warp % warps != 0) return;
  const OnlineRow whole = shares.whole(warp, warps);
  const float divisor = is_empty(whole) ? 1.0F : whole.l;
  T* const o = static_cast<T*>(args.o) + packed.place(row, walk, args.seq) * columns;
  for (int column = kWidth * lane; column < columns; column += 32 * kWidth) {
    Neighbours<float, kWidth> sum = {};
    for (int n = warp; n < warp + warps; ++n) {
      const float factor = shares.factor(n, whole);
#pragma unroll
      for (int x = 0; x < kWidth; ++x) sum.at[x] = fmaf(factor, shares.o[n][column + x], sum.at[x]);
    }
    Neighbours<T, kWidth> rounded;
#pragma unroll
    for (int x = 0; x < kWidth; ++x) rounded.at[x] = static_cast<T>(sum.at[x] / divisor);
    if constexpr (kWidth == 1) {
      o[column] = rounded.at[0];
    } else {
      store_together(o + column, rounded);
    }
  }
}

}  // namespace

int warps_a_row(std::int64_t splits) {
  int warps = 1;
  while (warps < kWarps && warps * 4 < splits) warps *= 2;
  return warps;
}

std::int64_t blocks_a_head(std::int64_t rows, std::int64_t splits) {
  return (rows * warps_a_row(splits) - 1) / kWarps + 1;
}

CombinePlan combine_kernel(const DeviceTask& task) {
  const Problem packed = packed_heads(task.problem);
  CombinePlan plan{.name = "combine",
                   .blocks = packed.batch * packed.heads * blocks_a_head(packed.seq, task.method.splits),
                   .threads = 32 * kWarps};
  const bool in_fours = packed.head_dim % 4 == 0;
  if (packed.storage == NumberType::fp16) {
    plan.kernel = in_fours ? combine<__half, 4> : combine<__half, 1>;
  } else {
    plan.kernel = in_fours ? combine<__nv_bfloat16, 4> : combine<__nv_bfloat16, 1>;
  }
  return plan;
}

}  // namespace flashsim::split_kv
