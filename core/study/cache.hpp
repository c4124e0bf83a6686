// Two kinds of memory that are taken for each other, side by side. The KV cache stays between calls and
// grows with the context; the intermediate memory of a call (S and P in standard attention) is gone after
// it, and is what the tiled algorithms remove. Then what a decode step moves, where the cache is nearly all
// there is. One report, from which every form is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/account/kv_cache.hpp"
#include "core/account/prediction.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/cache_type.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/problem.hpp"
#include "core/study/account.hpp"
#include "core/study/request.hpp"

namespace flashsim {

/// What is asked; what is absent has a default.
struct CacheRequest {
  AccountRequest account;  ///< batch, heads, seq (the context), head_dim, dtype, gpu; nothing else of it
  std::optional<std::int64_t> layers;
  std::optional<CacheType> type;      ///< as the tensors' where absent
  std::optional<std::int64_t> group;  ///< of quantized types alone
};

/// `over`, and `under` where `over` is silent; what followed from a value that changes follows again.
CacheRequest laid_over(CacheRequest over, const CacheRequest& given);

/// Reads the `input` of a cache's JSON, or that object alone. `source` names it in errors.
Result<CacheRequest> read_cache_request(std::string_view text, const std::string& source);

/// The cache with so many key/value heads.
struct CacheGrouping {
  std::string name;  ///< "multi-head", "grouped" or "one head"
  std::int64_t kv_heads = 0;
  bool is_this = false;  ///< the one that was asked for
  CacheSize size;
};

/// What an algorithm's call makes and drops again, in one layer.
struct CallMemory {
  Algorithm algorithm{};
  std::vector<Alive> intermediate;
  Bytes peak;
};

/// What attention moves in a decode step, in one layer.
struct DecodeWay {
  std::string name;                   ///< an algorithm's, or "packed heads"
  std::int64_t reads = 1;             ///< how often each key/value head is read
  Bytes cache;                        ///< K and V read, in the cache's type
  Bytes scores;                       ///< S and P, written and read
  Bytes rest;                         ///< Q, O and statistics
  Bytes step;                         ///< all layers, and the new rows written
  Seconds least_time;                 ///< of the step, by HBM bandwidth alone
  double most_tokens_per_second = 0;  ///< of all sequences together, by HBM bandwidth alone
  FlopsPerByte intensity;
  std::vector<Explanation> explanations;  ///< of what isn't the cache

  [[nodiscard]] Bytes attention() const { return cache + scores + rest; }
};

/// How much of something fits. Nothing but the cache is counted.
struct Room {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;  ///< of the context's length
};

struct CacheReport {
  Problem prefill;  ///< N = Nkv: the whole context at once
  Problem decode;   ///< N = 1 query for each sequence against Nkv keys
  CacheLayout layout;
  Machine machine;
  std::string gpu;  ///< as it was asked for: a name or a path

  Formula row = 0;                       ///< bytes of one row
  std::vector<CacheGrouping> groupings;  ///< from most key/value heads to one
  Bytes left;                            ///< of the GPU's memory, beside this cache; 0 where it doesn't fit
  Room room;                             ///< in the whole memory
  Room room_left;                        ///< in what is left

  std::vector<CallMemory> calls;  ///< standard, eager, flash2

  std::vector<DecodeWay> ways;  ///< standard, flash2, packed heads
  Formula new_rows = 0;         ///< bytes of the new token's rows, one layer
  Formula flops = 0;            ///< of the matrix products, one layer

  [[nodiscard]] const CacheSize& size() const;
  [[nodiscard]] Bytes token_bytes() const { return Bytes(size().token.value()); }
  [[nodiscard]] Bytes sequence_bytes() const { return Bytes(size().sequence.value()); }
  [[nodiscard]] Bytes bytes() const { return Bytes(size().batch.value()); }
  [[nodiscard]] bool fits_memory() const { return bytes() <= machine.memory; }
  /// Of `grouping`, in the whole memory.
  [[nodiscard]] Room room_of(const CacheGrouping& grouping) const;
  [[nodiscard]] const DecodeWay& standard() const { return ways[0]; }
  [[nodiscard]] const DecodeWay& flash() const { return ways[1]; }
  [[nodiscard]] const DecodeWay& packed() const { return ways[2]; }
  /// S and P of what standard moves in a decode step.
  [[nodiscard]] double score_share() const { return ratio(standard().scores, standard().attention()); }
  /// How many times as much standard moves in a decode step as flash2 does.
  [[nodiscard]] double standard_over_flash() const {
    return ratio(standard().attention(), flash().attention());
  }
};

/// The report that `request` asks for. Errors: whatever is wrong with the request, a group size without a
/// quantized type, a count that leaves 64 bits.
Result<CacheReport> make_cache_report(const CacheRequest& request);

/// The formula of every figure.
std::vector<ExplainedFigure> explanations_of(const CacheReport& report);

}  // namespace flashsim
