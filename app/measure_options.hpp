// The options of `flashsim measure`, and what they come to.
#pragma once

#include <optional>
#include <string>

#include "app/options.hpp"
#include "core/base/result.hpp"
#include "core/study/measure_request.hpp"

namespace CLI {
class App;
}

namespace flashsim {

/// What only a measurement has; the rest are options of an account.
struct MeasureOptions {
  std::optional<std::string> kernel, q, k, v, d_o, seed, magnitude, repeats, counters;
  bool cold = false;
  bool warm = false;
};

/// Adds every option but --format and --out. `causal` and `no_causal` are the switches of an account.
void add_measure_options(CLI::App& app, AccountOptions& account, MeasureOptions& options, bool& causal,
                         bool& no_causal);

/// The request that the options make, laid over the one of --input. Errors: each value that can't be.
Result<MeasureRequest> measure_request_of(const AccountOptions& account, const MeasureOptions& options);

}  // namespace flashsim
