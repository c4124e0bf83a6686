// Every choice that a method leaves open, for the passes that make gradients and for eager's passes.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/schedule/walk.hpp"

namespace flashsim::test {

inline std::string text_of(const Method& m) {
  return fmt::format("{} {}{}{}{}{}{}", facts_of(m.algorithm).name, name_of(m.pass),
                     m.deterministic ? " deterministic" : "", m.passes.scale ? " scale" : "",
                     m.passes.mask ? " mask" : "", m.passes.padding_mask ? " padding" : "",
                     m.passes.dropout ? " dropout" : "");
}

/// Eager's sixteen choices of passes: those of `bits`.
inline EagerPasses eager_passes(unsigned bits) {
  return {.scale = (bits & 1U) != 0,
          .mask = (bits & 2U) != 0,
          .padding_mask = (bits & 4U) != 0,
          .dropout = (bits & 8U) != 0};
}

/// Each algorithm that has a backward pass, at `tiling`, eager with the passes of `bits`, flash2
/// deterministic and not.
inline std::vector<Method> methods_of(Pass pass, Tiling tiling, unsigned bits) {
  std::vector<Method> all;
  for (const AlgorithmFacts& facts : kAlgorithms) {
    if (!has_backward(facts.algorithm)) continue;
    all.push_back({.algorithm = facts.algorithm, .tiling = tiling, .pass = pass});
    if (facts.algorithm == Algorithm::eager) all.back().passes = eager_passes(bits);
  }
  all.push_back({.algorithm = Algorithm::flash2, .tiling = tiling, .pass = pass, .deterministic = true});
  return all;
}

}  // namespace flashsim::test
