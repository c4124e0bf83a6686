// What a user asks of an account: every option, each of which may be absent. Requests come from the
// command line and from JSON, are laid over each other, and are resolved to a problem once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/block_pattern.hpp"
#include "core/problem/habits.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/splits.hpp"
#include "core/problem/tiling.hpp"
#include "core/study/eager_pass_list.hpp"

namespace flashsim {

class JsonReader;

struct AccountRequest {
  std::optional<Algorithm> algorithm;
  std::optional<std::int64_t> batch, heads, kv_heads, seq, kv_seq, head_dim;
  std::optional<NumberType> dtype;
  std::optional<bool> causal;
  std::optional<CausalAlignment> alignment;
  std::optional<Pass> pass;
  std::optional<EagerPassList> passes;  ///< eager
  std::optional<bool> deterministic;    ///< flash2 backward
  TilingRequest tiles;
  std::optional<Bytes> shared_memory;
  std::optional<std::string> gpu;
  std::optional<SplitsRequest> splits;    ///< split-kv alone
  std::optional<PatternRequest> pattern;  ///< block-sparse alone
  bool count_always = false;              ///< count walks of any length
  bool count_never = false;               ///< count no walk: the closed forms alone
  std::optional<bool> machine;            ///< HBM traffic after L2, and time
  std::optional<LaunchOrder> launch_order;
  std::optional<KeyOrder> key_order;
  std::optional<Overlap> overlap;
  std::optional<std::int64_t> blocks_per_sm;
};

/// `over`, and `under` where `over` is silent. A result's input states what was resolved as well as what was
/// asked for; where `over` changes what a value followed from, the value follows again: key/value length
/// and heads that were the query's, the GPU's shared memory, the tiles, and what only one algorithm, mask or
/// pass has.
AccountRequest laid_over(AccountRequest over, const AccountRequest& given);

/// What asks for exactly that problem, and leaves the rest open.
AccountRequest request_of(const Problem& problem);

/// The problem that is asked for. Key/value heads and length default to the query's. Errors: as
/// Problem::validate.
Result<Problem> resolve_problem(const AccountRequest& request);

/// Reads "sram_bytes", the shared memory of a block; errors stay with the reader.
std::optional<Bytes> read_shared_memory(JsonReader& reader);

/// Reads the keys of a request off an object that may hold others besides; errors stay with the reader.
AccountRequest read_request_keys(JsonReader& reader);

/// The keys of a problem, as read_request_keys reads them.
nlohmann::ordered_json problem_json(const Problem& problem);

/// Reads the `input` of an account's JSON, or that object alone. `source` names it in errors.
Result<AccountRequest> read_request(std::string_view text, const std::string& source);

}  // namespace flashsim
