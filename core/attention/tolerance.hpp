// How far rounding alone may move a result: bounds in N, d, the types, the tiles and the magnitudes of the
// run, for the worst case, derived in docs/numerics.md. A result further off than that isn't right; one
// within it may be, as long as the bound is small beside the result (says_nothing).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/magnitudes.hpp"
#include "core/attention/real_formula.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// A step of the derivation that later ones use by name.
struct NamedFormula {
  std::string name;     ///< "G"
  std::string meaning;  ///< "relative error of a sum of weights"
  RealFormula formula;
};

struct Tolerance {
  Algorithm algorithm{};
  NumberType compute{};  ///< fp32 or fp64, the type of the arithmetic
  NumberType storage{};  ///< the type of O, P and the gradients
  double epsilon = 0;    ///< ε: unit roundoff of the compute type, 2⁻²⁴ or 2⁻⁵³
  double unit = 0;       ///< u: unit roundoff of the storage type, 0 where it isn't narrower
  double smallest = 0;   ///< η: least subnormal of the storage type, 0 where it isn't narrower
  double vanishing = 0;  ///< λ: least normal number of the compute type; what is smaller may become 0
  bool scores_given = false;
  bool backward = false;         ///< dq, dk and dv are bounds too
  std::int64_t key_terms = 0;    ///< Nkv
  std::int64_t query_terms = 0;  ///< Nq = N · H/Hkv: the queries that a key's gradients are summed over
  std::int64_t head_dim = 0;     ///< d
  std::int64_t rescalings = 0;   ///< that a weight goes through: Tc of an online softmax, 1 where parts are
                                 ///< combined, 0 for algorithms that rescale nothing
  std::int64_t parts = 0;        ///< S, of which a combination is made; 0 where there is none
  double scale = 0;              ///< |scale|
  Magnitudes magnitudes;

  std::vector<NamedFormula> steps;      ///< what the bounds name, in the order of their use
  RealFormula output, lse, dq, dk, dv;  ///< the most that an element may be off by

  /// Rounding alone could explain a result of zeros: the scores are too large, or the types too narrow, to
  /// tell a right O from a wrong one.
  [[nodiscard]] bool output_says_nothing() const;
  [[nodiscard]] bool dq_says_nothing() const;
  [[nodiscard]] bool dk_says_nothing() const;
  [[nodiscard]] bool dv_says_nothing() const;
  /// The algorithm stores S, and the scores may be beyond the storage type's largest number. The bounds
  /// hold where nothing overflows.
  [[nodiscard]] bool scores_may_overflow() const;
};

/// The bounds on O and L of `method` computed in T = float or double, all sums in T.
template <class T>
Tolerance tolerance_of(const Problem& problem, const Method& method, const Magnitudes& magnitudes,
                       bool scores_given);

/// The same of an algorithm that has nothing to choose but its tiles.
template <class T>
Tolerance tolerance_of(Algorithm algorithm, const Problem& problem, Tiling tiling,
                       const Magnitudes& magnitudes, bool scores_given) {
  return tolerance_of<T>(problem, Method{.algorithm = algorithm, .tiling = tiling}, magnitudes, scores_given);
}

/// Those on dQ, dK and dV as well, computed from the O and L of the same run.
template <class T>
Tolerance gradient_tolerance_of(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                const Magnitudes& magnitudes);

}  // namespace flashsim
