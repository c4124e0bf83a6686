// The algorithms by name. What each one does stands in core/schedule, what it costs in core/account.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace flashsim {

enum class Algorithm {
  standard,
  eager,
  three_pass,
  three_pass_stored,
  flash1,
  flash2,
  memory_efficient,
  split_kv,
  block_sparse
};

struct AlgorithmFacts {
  Algorithm algorithm;
  std::string_view name;     ///< on the command line and in JSON
  std::string_view title;    ///< on the terminal
  std::string_view summary;  ///< one line for `list`
  bool tiled;                ///< works on tiles that stay on the chip, so they must fit there
  bool online;               ///< online softmax: l and O are brought to a new maximum as key tiles come
  bool rescales;             ///< what was summed under one maximum is brought to another
  bool stores_scores;        ///< S goes through HBM
};

inline constexpr std::array kAlgorithms{
    AlgorithmFacts{.algorithm = Algorithm::standard,
                   .name = "standard",
                   .title = "Standard attention",
                   .summary = "three kernels, scale and mask fused into them; S and P go through HBM",
                   .tiled = false,
                   .online = false,
                   .rescales = false,
                   .stores_scores = true},
    AlgorithmFacts{.algorithm = Algorithm::eager,
                   .name = "eager",
                   .title = "Eager attention",
                   .summary = "the framework spelling: product, scale, mask, softmax, product, each a pass",
                   .tiled = false,
                   .online = false,
                   .rescales = false,
                   .stores_scores = true},
    AlgorithmFacts{
        .algorithm = Algorithm::three_pass,
        .name = "three-pass",
        .title = "Three-pass attention",
        .summary = "tiles without the online softmax: maximum, denominator, output, S anew each time",
        .tiled = true,
        .online = false,
        .rescales = false,
        .stores_scores = false},
    AlgorithmFacts{.algorithm = Algorithm::three_pass_stored,
                   .name = "three-pass-stored",
                   .title = "Three-pass attention, S stored",
                   .summary = "the same, but the first pass stores S for the other two",
                   .tiled = true,
                   .online = false,
                   .rescales = false,
                   .stores_scores = true},
    AlgorithmFacts{.algorithm = Algorithm::flash1,
                   .name = "flash1",
                   .title = "FlashAttention",
                   .summary = "key/value tiles outside, query tiles inside; O, l and m go through HBM",
                   .tiled = true,
                   .online = true,
                   .rescales = true,
                   .stores_scores = false},
    AlgorithmFacts{.algorithm = Algorithm::flash2,
                   .name = "flash2",
                   .title = "FlashAttention-2",
                   .summary = "query tiles outside, key/value tiles inside; O stays on the chip until done",
                   .tiled = true,
                   .online = true,
                   .rescales = true,
                   .stores_scores = false},
    AlgorithmFacts{
        .algorithm = Algorithm::memory_efficient,
        .name = "memory-efficient",
        .title = "Memory-efficient attention",
        .summary = "framework code, chunk by chunk: memory falls from N² to a chunk, traffic doesn't",
        .tiled = false,
        .online = false,
        .rescales = true,
        .stores_scores = true},
    AlgorithmFacts{
        .algorithm = Algorithm::split_kv,
        .name = "split-kv",
        .title = "Split-KV attention",
        .summary = "FlashAttention-2 on runs of the keys side by side, a group's heads packed; then combined",
        .tiled = true,
        .online = true,
        .rescales = true,
        .stores_scores = false},
    AlgorithmFacts{
        .algorithm = Algorithm::block_sparse,
        .name = "block-sparse",
        .title = "Block-sparse FlashAttention",
        .summary = "FlashAttention-2 on the tiles that a pattern (--pattern) keeps; another function",
        .tiled = true,
        .online = true,
        .rescales = true,
        .stores_scores = false},
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
