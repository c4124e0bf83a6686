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

#ifndef FLASHSIM_KERNELS_OF_TARGET
#define FLASHSIM_KERNELS_OF_TARGET
namespace flashsim {
namespace {
struct KernelsOfTarget {
  const TileKernels<float>* float32 = nullptr;
  const TileKernels<double>* float64 = nullptr;
};
}  // namespace
}  // namespace flashsim
#endif

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
                                      .add_multiple = AddMultiple<T>,
                                      .divide = Divide<T>,
                                      .score_gradient = ScoreGradient<T>,
                                      .dot = Dot<T>,
                                      .round = Round<T>,
                                      .copy = Copy<T>,
                                      .pack = Pack<T>,
                                      .unpack = Unpack<T>};
  return &kernels;
}
KernelsOfTarget BothKernels() { return {.float32 = Kernels<float>(), .float64 = Kernels<double>()}; }

}  // namespace flashsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace flashsim {
namespace {

// Highway's own choice would load its library, which times the processor for some milliseconds at the start
// of every process.
#if HWY_ARCH_X86
bool has_avx2() {
  // Whatever has AVX2 has F16C, which not every compiler can ask for.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}
bool has_avx3() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

/// The kernels for every instruction set that was compiled and that this machine has, the best first.
std::vector<KernelsOfTarget> kernels_of_targets() {
  std::vector<KernelsOfTarget> all;
#if HWY_TARGETS & HWY_AVX3
  if (has_avx3()) all.push_back(N_AVX3::BothKernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if (has_avx2()) all.push_back(N_AVX2::BothKernels());
#endif
#if HWY_STATIC_TARGET != HWY_AVX3 && HWY_STATIC_TARGET != HWY_AVX2
  all.push_back(HWY_STATIC_DISPATCH(BothKernels)());
#endif
  return all;
}

}  // namespace

template <>
const TileKernels<float>& tile_kernels() {
  static const TileKernels<float>& kernels = *kernels_of_targets().front().float32;
  return kernels;
}
template <>
const TileKernels<double>& tile_kernels() {
  static const TileKernels<double>& kernels = *kernels_of_targets().front().float64;
  return kernels;
}
template <>
std::vector<const TileKernels<float>*> tile_kernels_of_every_target() {
  std::vector<const TileKernels<float>*> all;
  for (const KernelsOfTarget& target : kernels_of_targets()) all.push_back(target.float32);
  return all;
}
template <>
std::vector<const TileKernels<double>*> tile_kernels_of_every_target() {
  std::vector<const TileKernels<double>*> all;
  for (const KernelsOfTarget& target : kernels_of_targets()) all.push_back(target.float64);
  return all;
}

}  // namespace flashsim
#endif
