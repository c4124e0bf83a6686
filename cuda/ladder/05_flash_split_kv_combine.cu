// The second kernel of 05: L = logsumexp of the parts' L_s, O = Σ exp(L_s − L) O_s. A part that saw no key
// has L_s = −∞ and weighs nothing; where all are such, O is 0.
#include <cfloat>

#include "cuda/ladder/05_flash_split_kv_kernels.hpp"
#include "cuda/pieces/storage.cuh"

namespace flashsim::split_kv {
namespace {

constexpr int kWarps = 8;
constexpr int kMostDepth = 256;

__device__ inline float sum_of_warp(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffU, x, lanes);
  return x;
}
__device__ inline float largest_of_warp(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, lanes));
  return x;
}

/// m and l of a row over all parts, whose L are `stride` apart; all lanes of the warp get them.
__device__ inline OnlineRow over_parts(const float* lse, std::int64_t stride, int splits) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float own = lane < splits ? __ldcg(lse + lane * stride) : -INFINITY;
  OnlineRow row{.m = own};
#pragma unroll 1
  for (int s = lane + 32; s < splits; s += 32) row.m = fmaxf(row.m, __ldcg(lse + s * stride));
  row.m = largest_of_warp(row.m);
  const float reference = row.m == -INFINITY ? 0.0F : row.m;
  row.l = expf(own - reference);
#pragma unroll 1
  for (int s = lane + 32; s < splits; s += 32) row.l += expf(__ldcg(lse + s * stride) - reference);
  row.l = sum_of_warp(row.l);
  return row;
}

/// Parts whose O a lane loads at once.
constexpr int kAtOnce = 4;

/// kWidth columns of O of a row's parts, and their L.
template <int kWidth>
struct Parts {
  Neighbours<float, kWidth> o[kAtOnce];
  float lse[kAtOnce];

  /// Those of parts first, first + step …, which begin `stride` rows apart.
  __device__ void load(const CombineArguments& args, std::int64_t row, std::int64_t stride, int column,
                       int first, int step) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int s = first + i * step;
      const bool there = s < args.splits && column < args.head_dim;
      const std::int64_t at = row + s * stride;
      lse[i] = there ? __ldcg(args.lse_part + at) : -INFINITY;
      o[i] = {};
      if (there) {
        o[i] = *reinterpret_cast<const Neighbours<float, kWidth>*>(args.o_part + at * args.head_dim + column);
      }
    }
  }
  __device__ void add_to(Neighbours<float, kWidth>& sum, float reference) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      float weight = expf(lse[i] - reference);
      // Whatever saw a key weighs something, so that ∞ stays ∞ however small its weight is.
      if (weight == 0 && lse[i] != -INFINITY) weight = FLT_MIN;
#pragma unroll
      for (int x = 0; x < kWidth; ++x) sum.at[x] = fmaf(weight, o[i].at[x], sum.at[x]);
    }
  }
};

/// A block has kWarps warps and kWarps / warps_a_row rows. Lanes have kWidth neighbouring columns each.
template <class T, int kWidth>
__global__ void __launch_bounds__(32 * kWarps) combine(const __grid_constant__ CombineArguments args) {
  __shared__ float sums[kWarps][kMostDepth];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int share = warp % args.warps_a_row;
  const unsigned walk = blockIdx.x / args.blocks_a_head;
  const std::int64_t row =
      std::int64_t{blockIdx.x % args.blocks_a_head} * (kWarps / args.warps_a_row) + warp / args.warps_a_row;
  const std::int64_t stride = args.seq * args.group;  // rows of a key/value head
  const bool there = row < stride;
  const std::int64_t first = std::int64_t{walk} * args.splits * stride + row;  // among the parts' rows
  const std::int64_t place = PackedRows(row, args.group).place(0, walk, args.seq);
  const int columns = args.head_dim;

  OnlineRow whole;
  if (there) {
    for (int from = 0; from < columns; from += 32 * kWidth) {
      const int column = from + kWidth * lane;
      Parts<kWidth> parts;
      parts.load(args, first, stride, column, share,
                 args.warps_a_row);  // on their way while m and l are found
      if (from == 0) whole = over_parts(args.lse_part + first, stride, args.splits);
      const float reference = whole.m == -INFINITY ? 0.0F : whole.m;
      Neighbours<float, kWidth> sum = {};
      parts.add_to(sum, reference);
#pragma unroll 1
      for (int s = share + kAtOnce * args.warps_a_row; s < args.splits; s += kAtOnce * args.warps_a_row) {
        parts.load(args, first, stride, column, s, args.warps_a_row);
        parts.add_to(sum, reference);
      }
#pragma unroll
      for (int x = 0; x < kWidth; ++x) sums[warp][column + x] = sum.at[x];
    }
  }
  __syncthreads();  // All shares of a row's sum are there.
  if (!there || share != 0) return;
  const float divisor = is_empty(whole) ? 1.0F : whole.l;
  for (int column = kWidth * lane; column < columns; column += 32 * kWidth) {
    Neighbours<T, kWidth> rounded;
#pragma unroll
    for (int x = 0; x < kWidth; ++x) {
      float sum = 0;
      for (int n = 0; n < args.warps_a_row; ++n) sum += sums[warp + n][column + x];
      rounded.at[x] = static_cast<T>(sum / divisor);
    }
    T* const to = static_cast<T*>(args.o) + place * columns + column;
    if constexpr (kWidth == 1) {
      *to = rounded.at[0];
    } else {
      store_together(to, rounded);
    }
  }
  if (lane == 0) args.lse[place] = logsumexp(whole);
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
