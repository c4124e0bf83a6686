// How attention is computed: the algorithm, its tiles, and what else an algorithm leaves open.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/base/count.hpp"
#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

class BlockPattern;

/// Which way the data flows: from the inputs to O, from dO to the gradients, or the one and then the other.
enum class Pass { forward, backward, both };

constexpr std::string_view name_of(Pass pass) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward", "both"};
  return kNames[static_cast<std::size_t>(pass)];
}

/// The pass of that name. Errors: an unknown one.
Result<Pass> pass_named(std::string_view name);

/// Which of eager attention's pointwise steps are passes over HBM of their own. Scale and mask are fused into
/// their neighbours where they aren't, dropout isn't there. Softmax always is a pass.
struct EagerPasses {
  bool scale = true;
  bool mask = true;           ///< where the problem is causal
  bool padding_mask = false;  ///< where it isn't: a mask of padded keys [B, Nkv] is added to every score
  bool dropout = false;
  friend constexpr bool operator==(EagerPasses, EagerPasses) = default;
};

struct Method {
  Algorithm algorithm = Algorithm::flash2;
  Tiling tiling;
  Pass pass = Pass::forward;
  EagerPasses passes;  ///< eager
  bool deterministic =
      false;  ///< flash2 backward: dQ in a kernel of its own, so that nothing is added in HBM
  /// flash2 backward, and no forward beside it: the query heads of a group are packed, as in split-kv, so
  /// that K and V are loaded and dK and dV stored once for the group.
  bool packs_groups = false;
  /// flash2 backward: where key tiles add to dQ the L2 does the sum, and nothing of it crosses into the SMs.
  bool sums_in_l2 = false;
  std::int64_t splits = 1;                      ///< split-kv: into so many parts the keys are split
  std::shared_ptr<const BlockPattern> pattern;  ///< block-sparse: the tiles that are there
};

/// Eager attention's mask is a pass of its own.
constexpr bool masks_in_a_pass(const Problem& problem, const Method& method) {
  return problem.causal ? method.passes.mask : method.passes.padding_mask;
}

/// The query heads of a group are walked as one.
constexpr bool packs_heads(const Method& method) {
  return method.algorithm == Algorithm::split_kv ||
         (method.packs_groups && method.algorithm == Algorithm::flash2 && method.pass == Pass::backward);
}

/// The problem as the walks see it: with the heads of a group packed where the method packs them.
constexpr Problem walked_problem(const Problem& problem, const Method& method) {
  return packs_heads(method) ? packed_heads(problem) : problem;
}

/// The walks that make up all heads: each is that of one query head, or of one key/value head where the
/// query heads of a group are packed.
constexpr Count walks_of(const Problem& problem, const Method& method) {
  return Count(problem.batch) * (packs_heads(method) ? problem.kv_heads : problem.heads);
}

}  // namespace flashsim
