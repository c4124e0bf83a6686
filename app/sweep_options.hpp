// The options of sweep and tune: what can be said, and the requests that it comes to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "core/study/sweep.hpp"
#include "core/study/tune.hpp"

namespace CLI {
class App;
}

namespace flashsim {

struct PlotOptions {
  std::vector<std::string> files;
  std::optional<std::string> x, y, series;
};

struct SweepOptions {
  std::optional<std::string> causal;  ///< "yes", "no" or both; the switch stands in the account's options
  PlotOptions plot;
};

struct TuneOptions {
  std::optional<std::string> multiple_of;
  std::vector<std::string> plots;
};

/// The texts of `account` are what the parameters run through. `no_causal` is the switch.
void add_sweep_options(CLI::App& app, AccountOptions& account, SweepOptions& options, bool& no_causal);

/// What the options come to, laid over the sweep of --input. Errors: each value that can't be.
Result<SweepRequest> sweep_request_of(const AccountOptions& given, const SweepOptions& options);

/// The options of a problem and a machine, without algorithm and tiles, which are looked for. `causal` and
/// `no_causal` are the switches.
void add_tune_options(CLI::App& app, AccountOptions& account, TuneOptions& options, bool& causal,
                      bool& no_causal);

/// What the options come to, laid over the tuning of --input. Errors: each value that can't be.
Result<TuneRequest> tune_request_of(const AccountOptions& account, const TuneOptions& options);

}  // namespace flashsim
