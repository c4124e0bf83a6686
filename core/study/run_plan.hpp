// What a run is asked for, and the plan that it is resolved to: every choice made, nothing computed yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/device.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/splits.hpp"
#include "core/problem/switches.hpp"
#include "core/problem/tiling.hpp"
#include "core/study/request.hpp"
#include "core/study/scenario.hpp"
#include "core/study/tensor_source.hpp"

namespace flashsim {

inline constexpr std::int64_t kMostThreads = 1024;
/// Of drawn tensors, where nothing else is asked for.
inline constexpr RandomTensors kDefaultRandom{.seed = 0, .magnitude = 1};

/// Where a run is executed.
enum class RunDevice {
  cpu,   ///< as the walk says, step by step, and counted
  cuda,  ///< by a kernel of the ladder
};

constexpr std::string_view name_of(RunDevice device) { return device == RunDevice::cpu ? "cpu" : "cuda"; }

/// Errors: an unknown name.
Result<RunDevice> run_device_named(const std::string& name);

/// What a user asks of a run; what is absent is chosen.
struct RunRequest {
  AccountRequest account;  ///< the problem, the tiles, and the machine that tiles are chosen for
  std::optional<double> scale;
  std::optional<NumberType> compute;        ///< fp32 or fp64
  std::optional<Scenario> scenario;         ///< Q, K and V from here,
  std::optional<std::string> q, k, v, d_o;  ///< or from .npy files,
  std::optional<std::uint64_t> seed;        ///< or drawn,
  std::optional<double> magnitude;          ///< so large; of a scenario as Scenario::set_magnitude has it
  std::optional<RunDevice> device;          ///< the CPU where absent
  std::optional<Kernel> kernel;  ///< of a device; the algorithm's first that takes the type where absent
  bool backward = false;
  bool no_subtract_max = false;
  bool no_rescale = false;
  std::optional<Fault> fault;
  std::optional<bool> accumulate_in_storage;
  std::optional<int> threads;  ///< 1 to kMostThreads; the processor's where absent
};

struct RunPlan {
  Algorithm algorithm{};
  Problem problem;                     ///< with the storage type
  NumberType compute{};                ///< fp32 or fp64, no narrower than that
  Tiling tiling;                       ///< of the forward pass
  EagerPasses passes;                  ///< eager
  std::string gpu;                     ///< whose shared memory chose the tiles, and whose SMs the splits
  bool gpu_given = false;              ///< it is the one that was asked for
  std::optional<Bytes> shared_memory;  ///< the limit of --sram, which is enforced
  std::optional<SplitChoice> splits;   ///< of split-kv
  std::shared_ptr<const BlockPattern> pattern;  ///< of block-sparse
  TensorSource tensors;
  std::optional<Kernel> kernel;           ///< that a device executes; absent: the CPU follows the walk
  std::optional<Kernel> backward_kernel;  ///< and the gradients after it
  bool backward = false;
  bool deterministic = false;  ///< the gradients, of a device
  Switches switches;
  int threads = 1;

  /// Of one pass: that of its kernel where there is one.
  [[nodiscard]] Method method(Pass pass = Pass::forward) const;
  /// What is asked of a device: the forward kernel, or the one that makes the gradients.
  [[nodiscard]] DeviceTask task(Pass pass = Pass::forward) const;

  /// Random numbers take part.
  [[nodiscard]] bool draws() const { return tensors.qkv_drawn() || (backward && !tensors.d_o); }
};

/// Makes every choice. Errors: each combination that means nothing or contradicts itself, files that can't
/// be read, tiles beyond an explicit --sram, and a run that this machine's memory couldn't hold.
Result<RunPlan> plan_run(const RunRequest& request);

/// `over`, and `under` where it is silent; where `over` changes what a value followed from, the value follows
/// again.
RunRequest laid_over(RunRequest over, RunRequest under);

/// Reads the `input` of a run's JSON, or that object alone. `source` names it in errors.
Result<RunRequest> read_run_request(std::string_view text, const std::string& source);

/// The `input` of a run's JSON.
nlohmann::ordered_json run_input_json(const RunPlan& plan);

}  // namespace flashsim
