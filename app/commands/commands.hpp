// The commands. Each takes its options, emits one report and gives the exit status, or an error.
#pragma once

#include <optional>
#include <string>

#include "app/cache_options.hpp"
#include "app/measure_options.hpp"
#include "app/options.hpp"
#include "app/output.hpp"
#include "app/softmax_options.hpp"
#include "app/sweep_options.hpp"
#include "core/base/result.hpp"

namespace flashsim {

/// Exit statuses.
inline constexpr int kDone = 0;
inline constexpr int kWrongResult = 1;
inline constexpr int kBadInput = 2;

struct ReplayOptions {
  std::string scenario;
  std::optional<std::string> algo, row, tile_q, tile_k, magnitude, compute, input;
  bool no_rescale = false;
  bool no_subtract_max = false;
  bool step = false;
};

struct RunOptions {
  std::string scenario;
  std::optional<std::string> q, k, v, d_o, seed, magnitude, scale, compute, accumulate, fault, threads, save,
      device, kernel;
  bool backward = false;
  bool no_rescale = false;
  bool no_subtract_max = false;
};

Result<int> account_command(const AccountOptions& options, const OutputOptions& output);
Result<int> compare_command(const AccountOptions& options, const OutputOptions& output);
Result<int> replay_command(const ReplayOptions& options, const OutputOptions& output);
Result<int> run_command(const AccountOptions& account, const RunOptions& options,
                        const OutputOptions& output);
Result<int> cache_command(const AccountOptions& account, const CacheOptions& options,
                          const OutputOptions& output);
Result<int> sweep_command(const AccountOptions& account, const SweepOptions& options,
                          const OutputOptions& output);
Result<int> tune_command(const AccountOptions& account, const TuneOptions& options,
                         const OutputOptions& output);
Result<int> softmax_command(const SoftmaxOptions& options, const OutputOptions& output);
Result<int> measure_command(const AccountOptions& account, const MeasureOptions& options,
                            const OutputOptions& output);
Result<int> calibrate_command(const OutputOptions& output);
Result<int> list_command(const std::string& section, const OutputOptions& output);

}  // namespace flashsim
