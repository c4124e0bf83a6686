// What every rung of the ladder is given and what it tells, so that one harness runs, checks, times and
// counts them all.
#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime.h>

#include "core/problem/device.hpp"
#include "cuda/memory_pool.hpp"

namespace flashsim {

/// Bytes that a kernel itself counted, on the device; summed over all threads.
struct OwnTraffic {
  unsigned long long read = 0;
  unsigned long long written = 0;
};

/// Attention on the device. Q, O: [B, H, N, d], K, V: [B, Hkv, Nkv, d], row-major in the problem's storage
/// type; L: [B, H, N] in float32.
struct RungArguments {
  const DeviceTask& task;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;  ///< a kernel of the backward pass reads it, and lse
  float* lse = nullptr;
  const void* d_o = nullptr;  ///< [B, H, N, d]; it and what follows: for kernels of the backward pass alone
  void* d_q = nullptr;        ///< [B, H, N, d]
  void* d_k = nullptr;        ///< [B, Hkv, Nkv, d]
  void* d_v = nullptr;
  bool finite = true;  ///< what it is given holds neither NaN nor infinities; for the backward pass alone
  MemoryPool& pool;    ///< intermediate tensors come from here
  cudaStream_t stream = nullptr;
  OwnTraffic* traffic = nullptr;  ///< on the device; where given, the build that counts itself runs
};

/// One rung. Both functions throw CudaError.
struct Rung {
  Kernel kernel{};
  /// Launches its kernels on the stream, and returns before they end.
  void (*launch)(const RungArguments&) = nullptr;
  /// Of each of its CUDA kernels, in the order of their launches; of those that aren't a library's.
  std::vector<KernelResources> (*resources)(const DeviceTask&) = nullptr;
  /// Bytes that a library is given to work in, on top of the account; null where there is no library.
  std::size_t (*workspace)(const DeviceTask&) = nullptr;
};

/// Defined each in its own file.
extern const Rung kStandardRung;        // 01_standard.cu
extern const Rung kStandardCublasRung;  // 02_standard_cublas.cu
extern const Rung kFlashFp32Rung;       // 03_flash_fp32.cu
extern const Rung kFlashTensorRung;     // 04_flash_tensor.cu
extern const Rung kFlashSplitKvRung;    // 05_flash_split_kv.cu
extern const Rung kFlashBackwardRung;   // 06_flash_backward.cu

}  // namespace flashsim
