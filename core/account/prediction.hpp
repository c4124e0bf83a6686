// What the closed forms say of a run. Written apart from the walks and including none of their code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/account/formula.hpp"
#include "core/account/tally.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// A figure's formula, as --explain prints it.
struct Explanation {
  std::string figure;  ///< as figures_of names it: "hbm.K.read_bytes"
  std::string symbols;
  std::string numbers;
  Count value;
};

/// One tensor of a peak. `note` says what it is where the name doesn't.
struct Alive {
  Operand operand{};
  std::string note;
  Bytes size;  ///< over all heads
};

/// Pairs of a query and a key tile, of one walk.
struct TilePairs {
  Count visited;  ///< loaded and computed
  Count query_tiles;
  Count key_tiles;
};

/// What a pattern leaves of one head's blocks.
struct KeptBlocks {
  Count kept;    ///< there, whether the causal mask shows them or not
  Count blocks;  ///< Tr·Tc
  Count dense;   ///< that the causal mask alone would visit; those that are visited stand in TilePairs
  [[nodiscard]] double fraction() const {
    return static_cast<double>(kept.value()) / static_cast<double>(blocks.value());
  }
};

struct Prediction {
  Tally tally;
  TilePairs tile_pairs;
  std::optional<KeptBlocks> pattern;  ///< of block-sparse with a pattern
  std::vector<Explanation> explanations;
  std::vector<Alive> intermediate;  ///< alive at the peak, as the lesson counts it
  std::vector<Alive> allocated;     ///< alive at the peak, as an allocator sees it
};

/// The closed form of `method`, over all batch entries and heads.
Prediction predict(const Problem& problem, const Method& method);

/// The same, forward, of an algorithm that has nothing to choose but its tiles.
inline Prediction predict(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predict(problem, Method{.algorithm = algorithm, .tiling = tiling});
}

/// FLOPs that the problem asks for, whatever the algorithm.
struct ProblemFlops {
  Formula paper = 0;  ///< 4·N·Nkv·d a head, halved when causal and N = Nkv: what papers divide by
  Formula exact = 0;  ///< 4·d for every visible pair
};
ProblemFlops problem_flops(const Problem& problem);
/// The same under the pattern of a block-sparse method: `paper` stays what papers divide by, `exact` counts
/// the pairs that pattern and mask leave visible.
ProblemFlops problem_flops(const Problem& problem, const Method& method);

/// Bytes of Q, K and V together.
Bytes input_bytes(const Problem& problem);

/// Bytes of the tensors of a peak, together.
Bytes total_size(const std::vector<Alive>& alive);

}  // namespace flashsim
