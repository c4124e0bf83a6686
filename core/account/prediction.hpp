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
  Flops recomputed;                 ///< of the products: what backward computes again, not having kept it
};

/// Whether a prediction comes with the formulas of its figures. Writing them down is most of the work.
enum class Explain { no, yes };

/// The closed form of `method`, over all batch entries and heads. Of both passes figures add up, and so do
/// peaks: what forward has made stays for backward.
Prediction predict(const Problem& problem, const Method& method);

/// The same, forward, of an algorithm that has nothing to choose but its tiles.
inline Prediction predict(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predict(problem, Method{.algorithm = algorithm, .tiling = tiling});
}

/// The same figures from the same expressions, without explanations: for work on many tilings or problems.
Prediction predict_unexplained(const Problem& problem, const Method& method);

/// FLOPs that the problem asks for.
struct ProblemFlops {
  /// Forward 4·N·Nkv·d a head, halved when causal and N = Nkv; backward 2.5 times that, whatever the
  /// algorithm: what papers divide by (arXiv 2307.08691, section 4.1).
  Formula paper = 0;
  /// 2·d for every visible pair and product: two forward; backward four where P is kept, five where S has to
  /// be computed again. Under a pattern of blocks the pairs that it and the mask leave visible.
  Formula exact = 0;
};
ProblemFlops problem_flops(const Problem& problem, const Method& method);

/// The same, forward, which no algorithm changes.
inline ProblemFlops problem_flops(const Problem& problem) { return problem_flops(problem, Method{}); }

/// Bytes of Q, K and V together.
Bytes input_bytes(const Problem& problem);

/// Bytes of the tensors of a peak, together.
Bytes total_size(const std::vector<Alive>& alive);

}  // namespace flashsim
