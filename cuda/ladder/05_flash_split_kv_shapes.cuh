// Which shape of 05's block takes a task. Warps that share 16 rows take the keys in turn, so that none loads
// what another did; 128 rows take all eight warps for themselves.
#pragma once

#include "cuda/ladder/05_flash_split_kv_kernels.hpp"

namespace flashsim::split_kv {

template <class T, class S>
AttentionPlan plan(const DeviceTask& task) {
  const Problem packed = packed_heads(task.problem);
  return {
      .name = "attention",
      .kernel = attend<T, S>,
      .blocks = packed.batch * packed.heads * ((packed.seq + S::kRows - 1) / S::kRows) * task.method.splits,
      .threads = S::kThreads,
      .dynamic_shared = S::kSharedBytes};
}

template <class T>
AttentionPlan for_depth_64(const DeviceTask& task) {
  switch (task.method.tiling.query_rows) {
    case 16: return plan<T, Shape<64, 1, 1, 4, 32, 6, 2>>(task);
    case 32: return plan<T, Shape<64, 1, 2, 4, 32, 6, 2>>(task);
    case 64: return plan<T, Shape<64, 2, 2, 4, 32, 6, 1>>(task);
    default: return plan<T, Shape<64, 2, 4, 2, 32, 6, 1>>(task);
  }
}

template <class T>
AttentionPlan for_depth_128(const DeviceTask& task) {
  switch (task.method.tiling.query_rows) {
    case 16: return plan<T, Shape<128, 1, 1, 4, 32, 3, 2>>(task);
    case 32: return plan<T, Shape<128, 1, 2, 4, 32, 4, 1>>(task);
    case 64: return plan<T, Shape<128, 2, 2, 4, 16, 6, 1>>(task);
    default: return plan<T, Shape<128, 2, 4, 2, 32, 6, 1>>(task);
  }
}

template <class T>
AttentionPlan for_depth_256(const DeviceTask& task) {
  switch (task.method.tiling.query_rows) {
    case 16: return plan<T, Shape<256, 1, 1, 4, 16, 6, 1>>(task);
    case 32: return plan<T, Shape<256, 1, 2, 4, 16, 5, 1>>(task);
    case 64: return plan<T, Shape<256, 1, 4, 2, 32, 5, 1>>(task);
    default: return plan<T, Shape<256, 1, 8, 1, 32, 5, 1>>(task);
  }
}

template <class T>
AttentionPlan for_task(const DeviceTask& task) {
  if (task.problem.head_dim <= 64) return for_depth_64<T>(task);
  if (task.problem.head_dim <= 128) return for_depth_128<T>(task);
  return for_depth_256<T>(task);
}

}  // namespace flashsim::split_kv
