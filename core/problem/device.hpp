// What is asked of a GPU and what it says, in words that those who make reports and those who run kernels
// share. cuda/ answers; where there is no CUDA, every question is answered by an error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"

namespace flashsim {

/// The GPU on which something was measured.
struct DeviceFacts {
  std::string name;                ///< "NVIDIA H200"
  std::string compute_capability;  ///< "9.0"
  std::string driver;              ///< "580.159.04"; empty where it doesn't tell
  std::string runtime;             ///< CUDA version that the driver speaks: "13.0"
  Bytes memory;                    ///< all of it
  Bytes free_memory;               ///< before anything was allocated
};

/// A kernel of the ladder on a problem.
struct DeviceTask {
  Kernel kernel{};
  Problem problem;
  Switches switches;
  /// The kernel's own (method_of), with what that leaves open chosen: the splits of split-kv, whether
  /// gradients are deterministic.
  Method method;
};

/// Q: [B, H, N, d], K, V: [B, Hkv, Nkv, d], row-major in float32; every element is one that the storage type
/// holds. dO: [B, H, N, d], likewise, for a kernel of the backward pass alone.
struct DeviceInputs {
  std::span<const float> q, k, v, d_o = {};
};

/// What the compiler and the driver say of one CUDA kernel as it was launched.
struct KernelResources {
  std::string name;  ///< "flash", "scores" … as the account calls it
  std::int64_t registers_per_thread = 0;
  Bytes local_memory_per_thread;  ///< more than 0: registers were spilled, or an array was indexed
  Bytes shared_memory_per_block;  ///< static and dynamic
  std::int64_t threads_per_block = 0;
  std::int64_t blocks = 0;
  std::int64_t blocks_per_sm = 0;  ///< that fit at once
};

/// O: [B, H, N, d], L: [B, H, N], row-major in float32. Of a kernel of the backward pass they are what a
/// forward kernel saved for it on the device, and its own are dQ: [B, H, N, d], dK, dV: [B, Hkv, Nkv, d].
struct DeviceOutputs {
  std::vector<float> o, lse;
  std::vector<float> d_q, d_k, d_v = {};
  std::vector<KernelResources> kernels;
  Seconds seconds;  ///< of the one execution, by events; the first one, and so not for comparison
};

/// What the L2 holds when a timed or counted run starts.
enum class CacheState {
  cold,  ///< nothing of the inputs: it was flushed
  warm,  ///< what a run before it left
};

constexpr std::string_view name_of(CacheState cache) { return cache == CacheState::cold ? "cold" : "warm"; }

/// Who counts bytes.
enum class CounterSource {
  automatic,     ///< the GPU's counters; else the kernel itself; else nobody
  gpu,           ///< the GPU's own counters, through CUPTI
  instrumented,  ///< a build of the kernel that counts its own loads and stores
  none,          ///< nobody: bytes are modelled
};

inline constexpr std::array<std::string_view, 4> kCounterSources{"auto", "gpu", "instrumented", "none"};

constexpr std::string_view name_of(CounterSource source) {
  return kCounterSources[static_cast<std::size_t>(source)];
}

/// Errors: an unknown name.
Result<CounterSource> counter_source_named(std::string_view name);

struct MeasureHow {
  CacheState cache = CacheState::cold;
  std::int64_t repeats = 15;
  CounterSource counters = CounterSource::automatic;
};

/// One counter of the GPU.
struct CounterReading {
  std::string what;                   ///< "hbm_read_bytes" …, one of kCounters
  std::string metric;                 ///< the chip's own name for it; empty where the chip has none
  std::optional<std::int64_t> value;  ///< absent: not available on this chip
};

/// What counters are asked for; their order is that of reports.
inline constexpr std::array<std::string_view, 8> kCounters{
    "sm_read_bytes",             // L2 → SM
    "sm_written_bytes",          // SM → L2
    "hbm_read_bytes",            // HBM → L2
    "hbm_written_bytes",         // L2 → HBM
    "shared_wavefronts",         // of shared memory, 128 bytes each
    "tensor_instructions",       // of the tensor units, warp by warp
    "exponential_instructions",  // of the special-function units, warp by warp
    "sm_clock_hz",               // cycles a second while the kernels ran
};

/// How a kernel's bytes became known.
enum class ByteSource { measured, instrumented, modelled };

constexpr std::string_view name_of(ByteSource source) {
  return source == ByteSource::measured       ? "measured"
         : source == ByteSource::instrumented ? "instrumented"
                                              : "modelled";
}

struct DeviceMeasurement {
  std::vector<double> seconds;  ///< of each repeat, by events, in the order of their runs
  std::int64_t input_sets = 1;  ///< copies of the inputs that the repeats took in turn
  ByteSource bytes = ByteSource::modelled;
  std::vector<CounterReading>
      counters;             ///< measured; or instrumented, sm_read_bytes and sm_written_bytes alone
  std::string no_counters;  ///< why bytes aren't measured, in one sentence; empty where they are
  std::string remedy;       ///< what would help; empty where nothing is known to
  Bytes peak_memory;        ///< the most that was allocated above the inputs, as the allocator says
  Bytes library_workspace;  ///< of that: what a library was given to work in
  std::vector<KernelResources> kernels;
  std::optional<double> sm_clock_hz;      ///< as the driver told right after the repeats
  std::optional<double> memory_clock_hz;  ///< likewise
};

/// Told now and then what is being done, and how much of it is, from 0 to 1.
using DeviceProgress = std::function<void(std::string_view phase, double done)>;

/// A GPU, or what stands in its place in a test. Every function's errors: no device, whatever the driver
/// reports, a problem that doesn't fit the device's memory.
struct DeviceBackend {
  std::function<Result<DeviceFacts>()> facts;
  std::function<Result<DeviceOutputs>(const DeviceTask&, const DeviceInputs&)> execute;
  std::function<Result<DeviceMeasurement>(const DeviceTask&, const DeviceInputs&, const MeasureHow&,
                                          const DeviceProgress&)>
      measure;
  /// A machine file's content for this GPU: its sizes as the driver tells them, its rates as they were
  /// measured.
  std::function<Result<Machine>(const DeviceProgress&)> calibrate;
};

}  // namespace flashsim
