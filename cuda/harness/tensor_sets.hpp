// The tensors of a task on the device: a set that its kernel reads, and a set that it makes.
//
//   forward:   Q, K, V               →  O, L
//   backward:  Q, K, V, dO, O, L     →  dQ, dK, dV
//
// O and L are there before a kernel of the backward pass runs: a forward kernel makes them, once for each
// set of inputs, and they count as inputs.
#pragma once

#include <cstdint>
#include <optional>

#include "core/problem/device.hpp"
#include "cuda/harness/device_context.hpp"
#include "cuda/harness/tensors.hpp"
#include "cuda/ladder/rung.hpp"

namespace flashsim {

/// O: [B, H, N, d], L: [B, H, N].
struct ResultTensors {
  ResultTensors(MemoryPool& pool, const Problem& problem, cudaStream_t stream);
  void poison(cudaStream_t stream);
  DeviceTensor o, lse;
};

/// dQ: [B, H, N, d], dK, dV: [B, Hkv, Nkv, d].
struct GradientTensors {
  GradientTensors(MemoryPool& pool, const Problem& problem, cudaStream_t stream);
  void poison(cudaStream_t stream);
  DeviceTensor d_q, d_k, d_v;
};

struct InputSet {
  /// Copies the inputs to the device, and waits. Throws CudaError, and Refusal for a backward task without
  /// dO.
  InputSet(DeviceContext& place, const DeviceTask& task, const DeviceInputs& from);
  DeviceTensor q, k, v;
  bool finite = true;                  ///< backward: Q, K, V and dO hold neither NaN nor infinities
  std::optional<DeviceTensor> d_o;     ///< backward
  std::optional<ResultTensors> saved;  ///< backward: what the forward kernel made
};

struct OutputSet {
  OutputSet(DeviceContext& place, const DeviceTask& task);
  /// What nobody writes will show.
  void poison(cudaStream_t stream);
  std::optional<ResultTensors> made;         ///< forward
  std::optional<GradientTensors> gradients;  ///< backward
};

/// Launches the task's kernels; `traffic` is where they count themselves, where that is wanted.
void launch(DeviceContext& place, const DeviceTask& task, const InputSet& in, const OutputSet& out,
            OwnTraffic* traffic = nullptr);

/// Fills the tensors of `outputs` from the device. Waits. Throws CudaError.
void download(DeviceContext& place, const DeviceTask& task, const InputSet& in, const OutputSet& out,
              DeviceOutputs& outputs);

}  // namespace flashsim
