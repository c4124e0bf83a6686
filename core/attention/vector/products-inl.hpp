// Products of tiles: blocks of C stay in registers for the whole depth. Compiled once for every instruction
// set.
#if defined(FLASHSIM_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FLASHSIM_PRODUCTS_INL
#undef FLASHSIM_PRODUCTS_INL
#else
#define FLASHSIM_PRODUCTS_INL
#endif

#include <hwy/highway.h>

#include "core/attention/vector/rounding-inl.hpp"
#include "core/attention/vector/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace flashsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// C[0 … kRows) × kVectors vectors at column `v`, of row `r` on. `kAlongRows`: A's rows lie side by side.
template <int kRows, int kVectors, bool kAlongRows, class T>
HWY_INLINE void ProductBlock(const Product<T>& p, std::int64_t r, std::int64_t v) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  using Mode = typename Product<T>::Mode;
  T* HWY_RESTRICT c = p.c + r * p.c_stride + v;
  const T* HWY_RESTRICT a = p.a + r * p.a_row;
  const T* HWY_RESTRICT b = p.b + v;
  const std::int64_t a_row = kAlongRows ? 1 : p.a_row;
  const std::int64_t a_step = kAlongRows ? p.a_step : 1;
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = p.mode == Mode::add ? hn::Load(d, c + i * p.c_stride + j * lanes) : hn::Zero(d);
    }
  }
  for (std::int64_t n = 0; n < p.depth; ++n) {
    V row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = hn::Load(d, b + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const V each = hn::Set(d, a[i * a_row]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(each, row[j], sum[i][j]);
    }
    a += a_step;
    b += p.b_stride;
  }
  const V factor = hn::Set(d, p.factor);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      T* to = c + i * p.c_stride + j * lanes;
      V value = sum[i][j];
      if (p.mode == Mode::assign) value = hn::Mul(value, factor);
      if (p.mode == Mode::add_scaled) value = hn::MulAdd(value, factor, hn::Load(d, to));
      hn::Store(value, d, to);
    }
  }
}

template <int kVectors, bool kAlongRows, class T>
HWY_INLINE void ProductColumns(const Product<T>& p, std::int64_t v) {
  std::int64_t r = 0;
  for (; r + 8 <= p.rows; r += 8) ProductBlock<8, kVectors, kAlongRows>(p, r, v);
  if (r + 4 <= p.rows) {
    ProductBlock<4, kVectors, kAlongRows>(p, r, v);
    r += 4;
  }
  if (r + 2 <= p.rows) {
    ProductBlock<2, kVectors, kAlongRows>(p, r, v);
    r += 2;
  }
  if (r < p.rows) ProductBlock<1, kVectors, kAlongRows>(p, r, v);
}

template <bool kAlongRows, class T>
HWY_INLINE void ProductOf(const Product<T>& p) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t v = 0;
  for (; v + 2 * lanes <= p.columns; v += 2 * lanes) ProductColumns<2, kAlongRows>(p, v);
  for (; v < p.columns; v += lanes) ProductColumns<1, kAlongRows>(p, v);
}

template <class T>
void MultiplyTiles(const Product<T>& p) {
  p.a_row == 1 ? ProductOf<true>(p) : ProductOf<false>(p);
}

/// Lanes that hold −0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> HasNoWeight(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  return hn::RebindMask(d, hn::Eq(hn::BitCast(du, x), hn::BitCast(du, hn::Set(d, hn::TFromD<D>(-0.0)))));
}

template <class T>
void MultiplyTilesCarefully(const Product<T>& p, WeightsIn weights, NumberType rounded_to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Rounding<T> rounding(rounded_to);
  const bool scaled = p.mode == Product<T>::Mode::add_scaled;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    for (std::int64_t v = 0; v < p.columns; v += lanes) {
      T* c = p.c + r * p.c_stride + v;
      const auto before = hn::Load(d, c);
      auto sum = scaled ? hn::Zero(d) : before;
      for (std::int64_t n = 0; n < p.depth; ++n) {
        const auto a = hn::Set(d, p.a[r * p.a_row + n * p.a_step]);
        const auto b = hn::Load(d, p.b + n * p.b_stride + v);
        const auto next = RoundTo(d, hn::MulAdd(a, b, sum), rounding);
        if (weights == WeightsIn::neither) {
          sum = next;
        } else {
          sum = hn::IfThenElse(HasNoWeight(d, weights == WeightsIn::a ? a : b), sum, next);
        }
      }
      hn::Store(scaled ? hn::MulAdd(sum, hn::Set(d, p.factor), before) : sum, d, c);
    }
  }
}

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
