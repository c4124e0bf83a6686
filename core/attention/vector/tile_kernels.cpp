#include "core/attention/vector/tile_kernels.hpp"

// This file is compiled once for every instruction set, and the last time for the choice among them. Those
// between SSE2 and AVX2, and beyond the first with 512 bits, add nothing here.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/vector/tile_kernels.cpp"
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/attention/vector/products-inl.hpp"
#include "core/attention/vector/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace flashsim::HWY_NAMESPACE {

template <class T>
const TileKernels<T>* Kernels() {
  static const TileKernels<T> kernels{.target = hwy::TargetName(HWY_TARGET),
                                      .product = MultiplyTiles<T>,
                                      .careful_product = MultiplyTilesCarefully<T>,
                                      .scale = Scale<T>,
                                      .mask = Mask<T>,
                                      .maximum = Maximum<T>,
                                      .exponentials = Exponentials<T>,
                                      .exponential = Exponential<T>,
                                      .rounded_sum = RoundedSum<T>,
                                      .multiply = Multiply<T>,
                                      .divide = Divide<T>,
                                      .score_gradient = ScoreGradient<T>,
                                      .dot = Dot<T>,
                                      .round = Round<T>,
                                      .copy = Copy<T>,
                                      .pack = Pack<T>,
                                      .unpack = Unpack<T>};
  return &kernels;
}
const TileKernels<float>* FloatKernels() { return Kernels<float>(); }
const TileKernels<double>* DoubleKernels() { return Kernels<double>(); }

template <class T>
std::int64_t SpinMultiplyAdds(std::int64_t steps) {
  constexpr int kChains = 12;
  const hn::ScalableTag<T> d;
  const auto shrink = hn::Set(d, T(0.999));
  const auto grow = hn::Set(d, T(0.001));
  hn::Vec<decltype(d)> chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = hn::Set(d, static_cast<T>(i));
  for (std::int64_t n = 0; n < steps; ++n) {
    for (auto& chain : chains) chain = hn::MulAdd(chain, shrink, grow);
  }
  auto sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chains[i]);
  // The sum is at least 0 and is asked for, so that no chain is optimised away.
  const std::int64_t done = hn::GetLane(sum) < T(0) ? 0 : 1;
  return done * 2 * kChains * steps * LanesOf<T>();
}
std::int64_t SpinFloat(std::int64_t steps) { return SpinMultiplyAdds<float>(steps); }
std::int64_t SpinDouble(std::int64_t steps) { return SpinMultiplyAdds<double>(steps); }

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace flashsim {

HWY_EXPORT(FloatKernels);
HWY_EXPORT(DoubleKernels);
HWY_EXPORT(SpinFloat);
HWY_EXPORT(SpinDouble);

namespace {

template <class Choose>
auto of_every_target(const Choose& choose) {
  std::vector<decltype(choose())> all;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::GetChosenTarget().Update(target);
    all.push_back(choose());
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return all;
}

}  // namespace

template <>
const TileKernels<float>& tile_kernels() {
  static const TileKernels<float>& kernels = *HWY_DYNAMIC_DISPATCH(FloatKernels)();
  return kernels;
}
template <>
const TileKernels<double>& tile_kernels() {
  static const TileKernels<double>& kernels = *HWY_DYNAMIC_DISPATCH(DoubleKernels)();
  return kernels;
}
template <>
std::vector<const TileKernels<float>*> tile_kernels_of_every_target() {
  return of_every_target([] { return HWY_DYNAMIC_DISPATCH(FloatKernels)(); });
}
template <>
std::vector<const TileKernels<double>*> tile_kernels_of_every_target() {
  return of_every_target([] { return HWY_DYNAMIC_DISPATCH(DoubleKernels)(); });
}
template <>
std::int64_t spin_multiply_adds<float>(std::int64_t steps) {
  return HWY_DYNAMIC_DISPATCH(SpinFloat)(steps);
}
template <>
std::int64_t spin_multiply_adds<double>(std::int64_t steps) {
  return HWY_DYNAMIC_DISPATCH(SpinDouble)(steps);
}

}  // namespace flashsim
#endif
