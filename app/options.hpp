// The options of an account as they stand on the command line, and what they come to.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/study/request.hpp"

namespace flashsim {

/// The texts that were given; what is absent wasn't.
struct AccountOptions {
  std::optional<std::string> algo, batch, heads, kv_heads, seq, kv_seq, head_dim, dtype, alignment, tile_q,
      tile_k, sram, gpu, model, input, machine, launch_order, key_order, overlap, blocks_per_sm, pass, passes,
      splits, pattern;
  std::optional<bool> causal;
  bool deterministic = false;
  bool count = false;
  bool explain = false;
};

/// The request that the options make, without --input. Errors: each value that can't be.
Result<AccountRequest> given_request(const AccountOptions& options);

/// The same, laid over the account of --input.
Result<AccountRequest> request_of(const AccountOptions& options);

/// The type that --compute names.
Result<NumberType> compute_type_named(const std::string& name);

}  // namespace flashsim
