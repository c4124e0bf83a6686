// The algorithms by name. What each one does stands in core/schedule, what it costs in core/account.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace flashsim {

enum class Algorithm { standard, eager, flash1, flash2, split_kv, block_sparse };

struct AlgorithmFacts {
  Algorithm algorithm;
  std::string_view name;     ///< on the command line and in JSON
  std::string_view title;    ///< on the terminal
  std::string_view summary;  ///< one line for `list`
  bool tiled;                ///< keeps S and P on the chip, so its tiles must fit there
};

inline constexpr std::array kAlgorithms{
    AlgorithmFacts{Algorithm::standard, "standard", "Standard attention",
                   "three kernels, scale and mask fused into them; S and P go through HBM", false},
    AlgorithmFacts{Algorithm::eager, "eager", "Eager attention",
                   "the framework spelling: product, scale, mask, softmax, product, each a pass", false},
    AlgorithmFacts{Algorithm::flash1, "flash1", "FlashAttention",
                   "key/value tiles outside, query tiles inside; O, l and m go through HBM", true},
    AlgorithmFacts{Algorithm::flash2, "flash2", "FlashAttention-2",
                   "query tiles outside, key/value tiles inside; O stays on the chip until done", true},
    AlgorithmFacts{Algorithm::split_kv, "split-kv", "Split-KV attention",
                   "FlashAttention-2 on runs of the keys side by side, a group's heads packed; then combined",
                   true},
    AlgorithmFacts{Algorithm::block_sparse, "block-sparse", "Block-sparse FlashAttention",
                   "FlashAttention-2 on the tiles that a pattern (--pattern) keeps; another function", true},
};

constexpr const AlgorithmFacts& facts_of(Algorithm algorithm) {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    if (facts.algorithm == algorithm) return facts;
  }
  return kAlgorithms[0];
}

/// The algorithm of that name; `flash` is flash2. Errors: an unknown name, with the nearest one.
Result<Algorithm> algorithm_named(std::string_view name);

}  // namespace flashsim
