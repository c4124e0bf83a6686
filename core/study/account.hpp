// The account of one run: what an algorithm moves, keeps and computes on a problem, and what that means
// on a machine. The terminal, JSON, CSV and Markdown are all written from this one report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/account/block_simulation.hpp"
#include "core/account/check.hpp"
#include "core/account/inputs.hpp"
#include "core/account/occupancy.hpp"
#include "core/account/prediction.hpp"
#include "core/base/result.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/splits.hpp"
#include "core/schedule/walk.hpp"
#include "core/study/request.hpp"
#include "core/study/traffic.hpp"

namespace flashsim {

/// Walks up to so many steps are counted on every run.
inline constexpr std::int64_t kStepsCountedAlways = 1'000'000;

/// Where the figures come from. Tests put a wrong one in its place and see it reported; who makes many
/// accounts leaves out explanations and keeps machines.
struct AccountSources {
  std::function<Prediction(const Problem&, const Method&)> predict =
      [](const Problem& problem, const Method& method) { return flashsim::predict(problem, method); };
  std::function<void(const Problem&, const Method&, Listener&)> walk =
      [](const Problem& problem, const Method& method, Listener& listener) {
        flashsim::walk(problem, method, listener);
      };
  std::function<Result<Machine>(const std::string&)> machine = find_machine;
  std::optional<Habits> habits;  ///< of a kernel that is known, instead of those that the request asks for
  Method own_method = {};        ///< likewise: what no request asks for stays as it is here
};

/// Told now and then how much of a long walk is done, from 0 to 1.
using Progress = std::function<void(double done)>;

/// What standard attention moves and keeps on the same problem.
struct StandardBeside {
  Bytes hbm;
  Bytes peak_intermediate;
  Bytes saved_for_backward;
};

struct AccountReport {
  Problem problem;
  Method method;
  Machine machine;
  std::string gpu;                    ///< as it was asked for: a name or a path
  Bytes shared_memory;                ///< the limit that tiles must fit
  std::optional<SplitChoice> splits;  ///< of split-kv

  Prediction prediction;
  std::optional<Tally> counted;  ///< absent where the walk is too long and wasn't asked for
  std::vector<Discrepancy> discrepancies;

  ProblemFlops flops;
  std::vector<Occupancy> kernels;
  Habits habits;
  std::optional<Simulation> simulation;    ///< where --machine asks for it
  std::string not_simulated;               ///< why there is none although it was asked for
  std::optional<StandardBeside> standard;  ///< absent where its counts leave 64 bits
  std::vector<Alive> saved_for_backward;  ///< what forward keeps; empty where the account is of forward alone

  [[nodiscard]] const Tally& tally() const { return prediction.tally; }
  [[nodiscard]] Bytes hbm_bytes() const { return tally().hbm_total().total(); }
  [[nodiscard]] Bytes peak_intermediate() const { return total_size(prediction.intermediate); }
  /// Inputs and peak together.
  [[nodiscard]] Bytes memory_needed() const { return input_bytes(problem, method) + tally().peak_allocated; }
  /// The kernel whose blocks are told of: forward the first, else the first of those that keep most on the
  /// chip.
  [[nodiscard]] const Occupancy& main_kernel() const;
  [[nodiscard]] bool fits_memory() const { return memory_needed() <= machine.memory; }
  /// Useful (exact) FLOPs for each byte of HBM traffic.
  [[nodiscard]] FlopsPerByte intensity() const { return Flops(flops.exact.value()) / hbm_bytes(); }
  /// The machine's FLOPs for each byte of HBM bandwidth, in the storage type; absent without a rate.
  [[nodiscard]] std::optional<FlopsPerByte> balance() const;
  /// true, false, or absent where nothing was counted.
  [[nodiscard]] std::optional<bool> predicted_equals_counted() const;
};

/// A figure with its formula, in symbols and in numbers. A ratio has a value that isn't whole.
struct ExplainedFigure {
  std::string figure;  ///< "hbm.K.read_bytes"
  std::string symbols;
  std::string numbers;
  std::variant<std::int64_t, double> value;
};

/// The formula of every figure: those of the closed form, and the totals, peaks and ratios made of them.
std::vector<ExplainedFigure> explanations_of(const AccountReport& report);

/// One head's score matrix.
Count score_matrix_entries(const Problem& problem);
Bytes score_matrix_bytes(const Problem& problem);

/// The error of an account or a run whose counts are too large.
Error leaves_64_bits(Algorithm algorithm, const Problem& problem);

/// The account that `request` asks for. Errors: whatever is wrong with the request, tiles that don't
/// fit, a count that leaves 64 bits.
Result<AccountReport> make_account(const AccountRequest& request, const Progress& progress = {},
                                   const AccountSources& sources = {});

}  // namespace flashsim
