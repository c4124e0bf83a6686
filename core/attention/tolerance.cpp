#include "core/attention/tolerance.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/rounding.hpp"

namespace flashsim {
namespace {

/// Writes the bounds of docs/numerics.md over the numbers of `t`.
class Derivation {
 public:
  explicit Derivation(Tolerance& t)
      : t_(t),
        eps_("ε", t.epsilon),
        unit_(t.unit > 0 ? RealFormula("u", t.unit) : RealFormula(0)),
        eta_(t.unit > 0 ? RealFormula("η", t.smallest) : RealFormula(0)),
        lambda_("λ", t.vanishing),
        n_("Nkv", static_cast<double>(t.key_terms)),
        nq_("Nq", static_cast<double>(t.query_terms)),
        d_("d", static_cast<double>(t.head_dim)),
        rescalings_(facts_of(t.algorithm).online ? RealFormula("Tc", static_cast<double>(t.rescalings))
                                                 : RealFormula(static_cast<double>(t.rescalings))),
        ln_("ln Nkv", std::log(static_cast<double>(t.key_terms))),
        scale_("|scale|", t.scale),
        score_("A", t.magnitudes.score),
        value_("V", t.magnitudes.value) {}

  void forward();
  void backward();

 private:
  using F = RealFormula;

  /// A step that later ones call by its name.
  RealFormula named(std::string name, std::string meaning, const RealFormula& formula) {
    if (formula.value() == 0) return 0;
    const double value = formula.value();
    t_.steps.push_back({name, std::move(meaning), formula});
    return {std::move(name), value};
  }
  [[nodiscard]] RealFormula of(const char* symbol, double value) const { return {symbol, value}; }
  [[nodiscard]] RealFormula half_eta() const { return F(0.5) * eta_; }
  [[nodiscard]] bool narrow() const { return t_.unit > 0; }
  [[nodiscard]] RealFormula score_error() const;
  [[nodiscard]] RealFormula additions() const;

  Tolerance& t_;
  RealFormula eps_, unit_, eta_, lambda_, n_, nq_, d_, rescalings_, ln_, scale_, score_, value_;
  RealFormula e_, g_, lse_;  // E, G and the bound on L, by name
};

/// E: a score is a sum of d products, scaled; and rounded to storage where it is stored.
RealFormula Derivation::score_error() const {
  if (t_.scores_given) return 0;
  RealFormula error = eps_ * (d_ + 5) * score_ + d_ * scale_ * lambda_;
  if (!narrow() || !facts_of(t_.algorithm).stores_scores) return error;
  if (t_.algorithm != Algorithm::eager) return error + unit_ * score_ + half_eta();
  error = error + F(2) * unit_ * score_ + half_eta() * (F(1) + scale_);
  return error;
}

/// Roundings of a sum over the keys: each addition, each rescaling, the exponential and what is constant.
RealFormula Derivation::additions() const {
  return n_ + RealFormula(t_.algorithm == Algorithm::flash1 ? 6 : 5) * rescalings_ + 12;
}

void Derivation::forward() {
  const Magnitudes& m = t_.magnitudes;
  e_ = named("E", "absolute error of a score", score_error());
  g_ = named("G", "relative error of Σ P V, and of Σ P", e_ + eps_ * additions() + unit_);

  t_.lse = g_ * (F(1) + g_) + eps_ * (F(2) * score_ + F(10) * ln_);
  if (narrow()) t_.lse = t_.lse + n_ * eta_;

  RealFormula sums = g_;
  if (t_.parts > 0) {
    // Of a part's weight exp(L_part − m), and the sums over the parts.
    const RealFormula parts("S", static_cast<double>(t_.parts));
    const RealFormula lse = named("Λ", "bound on L of a part", t_.lse);
    const RealFormula combined = named("C", "relative error of what the parts weigh",
                                       lse + eps_ * (F(2) * score_ + F(2) * ln_ + parts + 8));
    sums =
        named("G_C", "relative error of Σ P V and of Σ P over the parts", g_ + combined * (F(1) + combined));
    t_.lse = sums * (F(1) + sums) + eps_ * (F(2) * score_ + F(10) * ln_);
  }
  RealFormula output =
      F(2) * sums * (F(1) + F(2) * sums) * of("V̄", m.summed_value) + F(4) * eps_ * ln_ * value_;
  if (narrow()) output = output + n_ * eta_ * value_;
  // flash1 takes O to HBM and back for every key tile.
  const RealFormula stored = unit_ * (t_.algorithm == Algorithm::flash1 ? value_ : of("O", m.output));
  if (narrow()) {
    output = output + (t_.algorithm == Algorithm::flash1 ? rescalings_ : F(1)) * (stored + half_eta());
  }
  t_.output = output + lambda_ * (F(4) * n_ + 4);
}

void Derivation::backward() {
  const Magnitudes& m = t_.magnitudes;
  const bool dp_is_stored = narrow() && !facts_of(t_.algorithm).tiled;
  const RealFormula r = of("R", m.summed_dp);
  const RealFormula b = of("B", m.dp_size);

  const RealFormula lse = named("Λ", "bound on L", t_.lse);
  const RealFormula f1 =
      named("F", "relative error of exp(S − L)", e_ + lse + eps_ * (F(2) * score_ + ln_ + 8));
  const RealFormula f = named("f", "the same of P as it is stored", f1 * (F(1) + f1) + unit_);
  const RealFormula p_floor = half_eta() + lambda_;

  RealFormula d_error = F(2) * (e_ + eps_ * (F(2) * score_ + F(6) * ln_) + unit_) * (F(1) + F(2) * g_) * r +
                        eps_ * (F(2) * additions() + d_) * (F(1) + F(2) * g_) * b;
  if (narrow()) {
    d_error = d_error + n_ * eta_ * b + unit_ * of("B_O", m.summed_do_o) +
              of("G₁", m.output_gradient_row) * half_eta();
  }
  if (dp_is_stored) d_error = d_error + unit_ * r + half_eta();
  d_error = named("δ", "absolute error of D", d_error);
  RealFormula dp_error = d_error + eps_ * (d_ + 2) * b;
  if (dp_is_stored) dp_error = dp_error + unit_ * r + half_eta();
  dp_error = named("e", "absolute error of dP − D", dp_error);

  const RealFormula stores = F(dp_is_stored ? 2 : 1) * unit_;
  const RealFormula dq_relative = f + stores + eps_ * (n_ + 8);
  const RealFormula dk_relative = f + stores + eps_ * (nq_ + 8);
  RealFormula floor = scale_ * p_floor * (of("X", m.dp) + r) + lambda_;
  if (narrow()) floor = floor + (F(1) + scale_) * half_eta();
  floor = named("β", "what an element of scale · dS may lose below the least normal number", floor);

  const auto ends = [&](const char* symbol, double largest) {
    return narrow() ? unit_ * of(symbol, largest) + half_eta() : F(0);
  };
  t_.dq = dq_relative * (F(1) + dq_relative) * of("Z_Q", m.dq_terms) +
          (F(1) + f) * dp_error * of("W_Q", m.dq_weights) + n_ * floor * of("K", m.key) + ends("|dQ|", m.dq) +
          lambda_;
  t_.dk = dk_relative * (F(1) + dk_relative) * of("Z_K", m.dk_terms) +
          (F(1) + f) * dp_error * of("W_K", m.dk_weights) + nq_ * floor * of("Q", m.query) +
          ends("|dK|", m.dk) + lambda_;
  t_.dv = (f + eps_ * (nq_ + 4)) * (F(1) + f) * of("Z_V", m.dv_terms) +
          nq_ * p_floor * of("G", m.output_gradient) + ends("|dV|", m.dv) + lambda_;
}

template <class T>
Tolerance numbers_of(Algorithm algorithm, const Problem& problem, Tiling tiling,
                     const Magnitudes& magnitudes) {
  Tolerance t{.algorithm = algorithm,
              .compute = sizeof(T) == sizeof(float) ? NumberType::fp32 : NumberType::fp64,
              .storage = problem.storage,
              .epsilon = std::numeric_limits<T>::epsilon() / 2,
              .vanishing = std::numeric_limits<T>::min()};
  if (is_narrower<T>(problem.storage)) {
    const StorageFormat format = format_of(problem.storage);
    t.unit = format.unit();
    t.smallest = format.smallest();
  }
  t.key_terms = problem.kv_seq;
  t.query_terms = problem.seq * (problem.heads / problem.kv_heads);
  t.head_dim = problem.head_dim;
  const AlgorithmFacts& facts = facts_of(algorithm);
  const std::int64_t key_tiles = (problem.kv_seq - 1) / tiling.key_rows + 1;
  t.rescalings = facts.online ? key_tiles : facts.rescales ? 1 : 0;
  t.scale = std::fabs(problem.score_scale());
  t.magnitudes = magnitudes;
  return t;
}

/// The bound is as large as the largest number that it bounds. Where that is 0, nothing is said against it.
bool as_large_as(const RealFormula& bound, double largest) {
  return largest > 0 && !(bound.value() < largest);
}

}  // namespace

bool Tolerance::output_says_nothing() const {
  return as_large_as(output, magnitudes.output > 0 ? magnitudes.output : magnitudes.value);
}
bool Tolerance::dq_says_nothing() const { return as_large_as(dq, magnitudes.dq); }
bool Tolerance::dk_says_nothing() const { return as_large_as(dk, magnitudes.dk); }
bool Tolerance::dv_says_nothing() const { return as_large_as(dv, magnitudes.dv); }

bool Tolerance::scores_may_overflow() const {
  if (unit == 0 || scores_given || !facts_of(algorithm).stores_scores) return false;
  const double product = algorithm == Algorithm::eager ? magnitudes.score / scale : 0;
  return std::fmax(magnitudes.score, product) >= format_of(storage).largest;
}

template <class T>
Tolerance tolerance_of(const Problem& problem, const Method& method, const Magnitudes& magnitudes,
                       bool scores_given) {
  Tolerance t = numbers_of<T>(method.algorithm, problem, method.tiling, magnitudes);
  t.scores_given = scores_given;
  if (method.algorithm == Algorithm::split_kv && method.splits > 1) t.parts = method.splits;
  Derivation(t).forward();
  return t;
}

template <class T>
Tolerance gradient_tolerance_of(Algorithm algorithm, const Problem& problem, Tiling tiling,
                                const Magnitudes& magnitudes) {
  Tolerance t = numbers_of<T>(algorithm, problem, tiling, magnitudes);
  t.backward = true;
  Derivation derivation(t);
  derivation.forward();
  derivation.backward();
  return t;
}

template Tolerance tolerance_of<float>(const Problem&, const Method&, const Magnitudes&, bool);
template Tolerance tolerance_of<double>(const Problem&, const Method&, const Magnitudes&, bool);
template Tolerance gradient_tolerance_of<float>(Algorithm, const Problem&, Tiling, const Magnitudes&);
template Tolerance gradient_tolerance_of<double>(Algorithm, const Problem&, Tiling, const Magnitudes&);

}  // namespace flashsim
