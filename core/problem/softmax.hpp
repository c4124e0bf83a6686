// Softmax by itself, y = softmax(x) over the rows of a matrix, as when a decoder picks its next token: the
// ways to compute it (Milakov and Gimelshein, arXiv 1805.02867), without or with the k largest of each row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"

namespace flashsim {

enum class SoftmaxWay { naive, safe, online, safe_top_k, online_top_k, fused_top_k };

/// What a pass over a row does with each element.
enum class SoftmaxPass {
  sum,           ///< d ← d + exp(x)
  maximum,       ///< m ← max(m, x)
  safe_sum,      ///< d ← d + exp(x − m)
  online,        ///< m′ = max(m, x), d ← d · exp(m − m′) + exp(x − m′)
  normalise,     ///< y = exp(x − m) / d (naive: exp(x) / d)
  top_k,         ///< keeps the k largest so far
  online_top_k,  ///< online and top_k at once
};

/// Exponentials that a pass takes of each element.
constexpr int exponentials_of(SoftmaxPass pass) {
  switch (pass) {
    case SoftmaxPass::maximum:
    case SoftmaxPass::top_k: return 0;
    case SoftmaxPass::sum:
    case SoftmaxPass::safe_sum:
    case SoftmaxPass::normalise: return 1;
    case SoftmaxPass::online:
    case SoftmaxPass::online_top_k: return 2;
  }
  return 0;
}

constexpr std::string_view name_of(SoftmaxPass pass) {
  constexpr std::array<std::string_view, 7> kNames{"sum",       "maximum", "safe_sum",    "online",
                                                   "normalise", "top_k",   "online_top_k"};
  return kNames[static_cast<std::size_t>(pass)];
}

struct SoftmaxWayFacts {
  SoftmaxWay way;
  std::string_view name;     ///< in JSON
  std::string_view title;    ///< on the terminal
  std::string_view summary;  ///< one line: the passes
  bool subtracts_max;        ///< and so can't overflow
  bool selects;              ///< gives the k largest
};

inline constexpr std::array kSoftmaxWays{
    SoftmaxWayFacts{SoftmaxWay::naive, "naive", "naive", "sum of exp(x); exp(x)/sum", false, false},
    SoftmaxWayFacts{SoftmaxWay::safe, "safe", "safe", "maximum; sum of exp(x − max); exp(x − max)/sum", true,
                    false},
    SoftmaxWayFacts{SoftmaxWay::online, "online", "online", "maximum and sum at once; exp(x − max)/sum", true,
                    false},
    SoftmaxWayFacts{SoftmaxWay::safe_top_k, "safe-top-k", "safe, then top-k",
                    "safe; the k largest of y in a kernel of their own", true, true},
    SoftmaxWayFacts{SoftmaxWay::online_top_k, "online-top-k", "online, then top-k",
                    "online; the k largest of y in a kernel of their own", true, true},
    SoftmaxWayFacts{SoftmaxWay::fused_top_k, "fused-top-k", "online with top-k",
                    "maximum, sum and the k largest at once; y is never whole", true, true},
};

constexpr const SoftmaxWayFacts& facts_of(SoftmaxWay way) {
  return kSoftmaxWays[static_cast<std::size_t>(way)];
}

/// The defaults are a batch of tokens over the vocabulary of Llama 3.
struct SoftmaxProblem {
  std::int64_t rows = 1024;
  std::int64_t columns = 128256;  ///< of x and y
  NumberType storage = NumberType::fp16;
  std::optional<std::int64_t> top_k;

  /// Bytes of a row of x, or of y.
  [[nodiscard]] Bytes row_bytes() const { return Bytes(Count(columns) * size_of(storage)); }
  /// Bytes of an index into a row: 4 where that is enough.
  [[nodiscard]] std::int64_t index_size() const { return columns <= (std::int64_t{1} << 31) ? 4 : 8; }
  /// Bytes of the k results of a row, values and indices; 0 without.
  [[nodiscard]] Bytes result_bytes() const {
    return Bytes(Count(top_k.value_or(0)) * (Count(size_of(storage)) + index_size()));
  }
  /// Sizes are dimensions, and k is one of 1 … columns.
  [[nodiscard]] Outcome validate() const;
};

/// What of a row lies in the shared memory of a block: all of it, or a piece at a time.
struct RowsOnChip {
  std::int64_t rows = 0;     ///< whole rows that fit at once; 0 where not even one does
  std::int64_t columns = 1;  ///< of the pieces in which a row comes
  [[nodiscard]] bool fits() const { return rows > 0; }
};

/// Room for at least one element. Errors: a block that hasn't.
Result<RowsOnChip> rows_on_chip(const SoftmaxProblem& problem, Bytes shared_memory);

}  // namespace flashsim
