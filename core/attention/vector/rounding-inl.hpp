// Rounding to a storage type, lane by lane: the same as stored_as (core/base/rounding.hpp). Compiled once for
// every instruction set.
#if defined(FLASHSIM_ROUNDING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FLASHSIM_ROUNDING_INL
#undef FLASHSIM_ROUNDING_INL
#else
#define FLASHSIM_ROUNDING_INL
#endif

#include <cmath>
#include <limits>

#include <hwy/highway.h>

#include "core/base/rounding.hpp"

HWY_BEFORE_NAMESPACE();
namespace flashsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The numbers that rounding T to `type` needs; does nothing where `type` holds all of T.
template <class T>
struct Rounding {
  explicit Rounding(NumberType type) : wanted(is_narrower<T>(type)) {
    const StorageFormat format = format_of(type);
    constexpr int kDigits = std::numeric_limits<T>::digits;
    dropped = kDigits - format.digits;
    least_normal = static_cast<T>(std::ldexp(1.0, format.least_exponent));
    // Adding this to a subnormal rounds it to the last place that the type has.
    last_place = static_cast<T>(std::ldexp(1.0, kDigits - 1 + format.least_exponent - format.digits + 1));
    largest = static_cast<T>(format.largest);
  }
  bool wanted;
  int dropped = 0;  ///< bits of the significand that go
  T least_normal{}, last_place{}, largest{};
};

template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE V RoundTo(D d, V x, const Rounding<T>& to) {
  if (!to.wanted) return x;
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  const auto one = hn::Set(du, U{1});
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRightSame(bits, to.dropped), one);
  const auto half_less_one = hn::Set(du, (U{1} << (to.dropped - 1)) - 1);
  const auto kept = hn::Set(du, ~((U{1} << to.dropped) - 1));
  const V size = hn::Abs(x);
  V rounded = hn::Abs(hn::BitCast(d, hn::And(hn::Add(bits, hn::Add(half_less_one, odd)), kept)));
  const V place = hn::Set(d, to.last_place);
  rounded = hn::IfThenElse(hn::Lt(size, hn::Set(d, to.least_normal)), hn::Sub(hn::Add(size, place), place),
                           rounded);
  rounded = hn::IfThenElse(hn::Gt(rounded, hn::Set(d, to.largest)),
                           hn::Set(d, std::numeric_limits<T>::infinity()), rounded);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(rounded, x));
}

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
