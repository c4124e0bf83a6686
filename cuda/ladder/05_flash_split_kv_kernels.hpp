// The compiled kernels of 05: attention, a file for each storage type, and the one that combines its parts.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/problem/device.hpp"
#include "cuda/ladder/05_flash_split_kv.cuh"
#include "cuda/ladder/launch.hpp"

namespace flashsim::split_kv {

using AttentionPlan = LaunchPlan<Arguments>;

/// For the query rows of the task's tiling, 16, 32, 64 or 128, and a head dimension up to 256.
AttentionPlan attention_fp16(const DeviceTask& task);
AttentionPlan attention_bf16(const DeviceTask& task);

struct CombineArguments {
  const float* o_part;    ///< [B, Hkv, S, rows, d]
  const float* lse_part;  ///< [B, Hkv, S, rows]
  void* o;                ///< [B, H, N, d] in the storage type
  float* lse;             ///< [B, H, N]
  std::int64_t seq;       ///< N
  unsigned group;         ///< G
  unsigned blocks_a_head;
  int splits;  ///< S
  int warps_a_row;
  int head_dim;
};
using CombinePlan = LaunchPlan<CombineArguments>;

/// Warps that share the parts of a row, a power of two: each has four or less, as far as a block has them.
int warps_a_row(std::int64_t splits);

/// Of the grid, for each key/value head of all batch entries with so many packed rows.
std::int64_t blocks_a_head(std::int64_t rows, std::int64_t splits);

CombinePlan combine_kernel(const DeviceTask& task);

}  // namespace flashsim::split_kv
