// What a measurement is asked for: the kernels, the problem, its tensors, and how they are measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.hpp"
#include "core/problem/device.hpp"
#include "core/study/kernel_choice.hpp"
#include "core/study/request.hpp"

namespace flashsim {

inline constexpr std::int64_t kMostRepeats = 10'000;

/// What is absent is chosen.
struct MeasureRequest {
  /// The problem, its algorithm, its pass and the machine; what a kernel leaves open: the splits, whether
  /// gradients are deterministic. Nothing else of it.
  AccountRequest account;
  std::optional<KernelChoice> kernel;       ///< the algorithm's first that takes the type where absent
  std::optional<std::string> q, k, v, d_o;  ///< from .npy files,
  std::optional<std::uint64_t> seed;        ///< or drawn,
  std::optional<double> magnitude;          ///< so large
  std::optional<CacheState> cache;
  std::optional<std::int64_t> repeats;  ///< 1 to kMostRepeats
  std::optional<CounterSource> counters;

  /// Every kernel that takes the problem.
  [[nodiscard]] bool asks_for_all() const { return kernel && !kernel->one; }
};

/// `over`, and `under` where it is silent; where `over` changes what a value followed from, the value follows
/// again.
MeasureRequest laid_over(MeasureRequest over, MeasureRequest under);

/// Reads the `input` of a measurement's JSON, or that object alone. `source` names it in errors.
Result<MeasureRequest> read_measure_request(std::string_view text, const std::string& source);

/// Errors: an unknown one.
Result<CacheState> cache_state_named(const std::string& name);

}  // namespace flashsim
