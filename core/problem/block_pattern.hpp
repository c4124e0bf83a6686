// Which blocks of block-sparse attention are there (FlashAttention, arXiv 2205.14135, Proposition 4): a block
// is one query tile by one key tile, and all pairs of a block that is there take part, unless the causal mask
// hides them. The rest of the matrix is masked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

enum class PatternKind {
  window,   ///< a block that holds a pair with |query position − key position| < W
  strided,  ///< the last C key tiles up to the diagonal, and every C-th: Child et al., arXiv 1904.10509
  rows,     ///< spelled out, a text of 0 and 1 for every query tile
};

/// A pattern as it is asked for, before there are tiles.
struct PatternRequest {
  PatternKind kind{};
  std::int64_t size = 0;          ///< W in tokens, or C in key tiles
  std::vector<std::string> rows;  ///< "1010…"
  std::string source;             ///< what errors call the rows: the path of their file, in quotes
};

/// "window:W", "strided:C", or the path of a file (flashsim.pattern/1), which is read.
Result<PatternRequest> parse_pattern(const std::string& text);

/// The same from the `input` of a result: a text, or the rows. `path` is what errors call it.
Result<PatternRequest> pattern_from_json(const nlohmann::json& value, const std::string& path);
nlohmann::ordered_json pattern_json(const PatternRequest& pattern);

/// "window:1024", "strided:4", or the file.
std::string pattern_text(const PatternRequest& pattern);

/// A pattern on the tiles of a problem.
class BlockPattern {
 public:
  /// Errors: rows that aren't as many as there are tiles, or that hold something else than 0 and 1; more
  /// query tiles than an account can be summed over.
  static Result<std::shared_ptr<const BlockPattern>> on_tiles(PatternRequest request, const Problem& problem,
                                                              Tiling tiling);

  [[nodiscard]] const PatternRequest& request() const { return request_; }
  [[nodiscard]] Tiling tiling() const { return tiling_; }

  /// The first key tile from `j` on that is there for query tile i; Tc where none is.
  [[nodiscard]] std::int64_t next(std::int64_t i, std::int64_t j) const;
  /// The block of (query tile i, key tile j) is there.
  [[nodiscard]] bool has(std::int64_t i, std::int64_t j) const { return next(i, j) == j; }
  /// The block that holds this pair is there.
  [[nodiscard]] bool shows(std::int64_t row, std::int64_t key) const {
    return has(row / tiling_.query_rows, key / tiling_.key_rows);
  }
  /// Of the keys before `end`, those in blocks that are there for query `row`.
  [[nodiscard]] std::int64_t keys_shown(std::int64_t row, std::int64_t end) const;

 private:
  BlockPattern(PatternRequest request, const Problem& problem, Tiling tiling);

  PatternRequest request_;
  Tiling tiling_;
  std::int64_t seq_;
  std::int64_t kv_seq_;
  std::int64_t key_tiles_;
  std::int64_t first_position_;  ///< of query 0, among the keys
};

}  // namespace flashsim
