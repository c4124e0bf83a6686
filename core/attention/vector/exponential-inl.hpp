// The exponential, lane by lane. Highway's own is right everywhere and minds subnormal results all the time;
// after the products it is what attention spends most on. So where neither argument nor result is near the
// edges of the type, a shorter one takes its place: exp(x) = 2ⁿ · exp(r) with n = round(x / ln 2) and |r| ≤
// ln 2 / 2, where a polynomial is off by a sixth of the unit roundoff. Both are within two units of the last
// place. Compiled once for every instruction set.
#if defined(FLASHSIM_EXPONENTIAL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FLASHSIM_EXPONENTIAL_INL
#undef FLASHSIM_EXPONENTIAL_INL
#else
#define FLASHSIM_EXPONENTIAL_INL
#endif

#include <iterator>
#include <limits>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace flashsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The numbers of exp in T. Between kUsualLeast and kUsualMost 2ⁿ and the result are normal numbers. Below
/// kLeast exp is 0, beyond kMost infinite; Highway's exp is as good up to there as elsewhere, though it
/// promises less. (exp(r) − 1 − r) / r² ≈ Σ kTerms[k] rᵏ interpolates at the Chebyshev nodes. kLn2High has as
/// many zeros at its end as n has bits, and kLn2Low is the rest. Adding kRounder leaves n in the last bits.
template <class T>
struct ExponentialOf;
template <>
struct ExponentialOf<float> {
  static constexpr float kUsualLeast = -86.5F, kUsualMost = 88.0F, kLeast = -104.0F, kMost = 88.7228317F;
  static constexpr float kRounder = 0x1.8p23F, kPerLn2 = 0x1.715476p0F;
  static constexpr float kLn2High = 0x1.62e4p-1F, kLn2Low = 0x1.7f7d1cp-20F;
  static constexpr float kTerms[] = {0.5F, 0.16666577F, 0.041666555F, 0.008363173F, 0.0013926176F};
  static constexpr int kSignificandBits = 23;
};
template <>
struct ExponentialOf<double> {
  static constexpr double kUsualLeast = -706, kUsualMost = 708, kLeast = -745.2, kMost = 709.782712893384;
  static constexpr double kRounder = 0x1.8p52, kPerLn2 = 0x1.71547652b82fep0;
  static constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kTerms[] = {0.5,
                                      0x1.5555555555556p-3,
                                      0x1.5555555553d68p-5,
                                      0x1.11111111109b5p-7,
                                      0x1.6c16c17889ef1p-10,
                                      0x1.a01a01a7c2efep-13,
                                      0x1.a019b9149a41cp-16,
                                      0x1.71de0db2f6b19p-19,
                                      0x1.28917c89a43a7p-22,
                                      0x1.af389ecfc4b9cp-26};
  static constexpr int kSignificandBits = 52;
};

/// exp(x) where kUsualLeast ≤ x ≤ kUsualMost.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE V UsualExponential(D d, V x) {
  using E = ExponentialOf<T>;
  constexpr int kLast = static_cast<int>(std::size(E::kTerms)) - 1;
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, E::kRounder);
  const V shifted = hn::MulAdd(x, hn::Set(d, E::kPerLn2), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, E::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, E::kLn2Low), r);
  V sum = hn::Set(d, E::kTerms[kLast]);
  for (int k = kLast - 1; k >= 0; --k) sum = hn::MulAdd(sum, r, hn::Set(d, E::kTerms[k]));
  const V small = hn::Add(hn::MulAdd(hn::Mul(r, r), sum, r), hn::Set(d, T(1)));
  // n is added to the exponent, where the polynomial is between √½ and √2.
  const auto raise = hn::ShiftLeft<E::kSignificandBits>(hn::BitCast(du, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, small), raise));
}

/// exp(x) for any x. A score of −∞ gives no weight (−0) even where x is NaN, as in a row whose L is NaN.
/// Lanes where exp is known come in as 0, because what Highway makes of them may be subnormal, which costs
/// some machines a hundred cycles.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_NOINLINE V AnyWeightOf(D d, V x, V score) {
  using E = ExponentialOf<T>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const auto usual = hn::And(hn::Ge(x, hn::Set(d, E::kUsualLeast)), hn::Le(x, hn::Set(d, E::kUsualMost)));
  const auto vanishes = hn::Lt(x, hn::Set(d, E::kLeast));
  const auto overflows = hn::Gt(x, hn::Set(d, E::kMost));
  V y = hn::Exp(d, hn::IfThenZeroElse(hn::Or(hn::Or(vanishes, overflows), hn::IsNaN(x)), x));
  // A lane has the same bits whatever its neighbours are.
  y = hn::IfThenElse(usual, UsualExponential(d, hn::IfThenElseZero(usual, x)), y);
  y = hn::IfThenElse(overflows, hn::Set(d, kInfinity), y);
  y = hn::IfThenElse(vanishes, hn::Zero(d), y);
  y = hn::IfThenElse(hn::IsNaN(x), x, y);
  return hn::IfThenElse(hn::Eq(score, hn::Set(d, -kInfinity)), hn::Set(d, T(-0.0)), y);
}

/// The weight exp(x) of a key with the score `score`, x being the score less what is subtracted.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE V WeightOf(D d, V x, V score) {
  using E = ExponentialOf<T>;
  const auto usual = hn::And(hn::Ge(x, hn::Set(d, E::kUsualLeast)), hn::Le(x, hn::Set(d, E::kUsualMost)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) return AnyWeightOf(d, x, score);
  return UsualExponential(d, x);
}

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
