// The kernels of 03 as they should be, for each depth that a head dimension is padded to.
#include "cuda/ladder/03_flash_fp32.cuh"
#include "cuda/ladder/03_flash_fp32_kernels.hpp"

namespace flashsim::flash_fp32 {
namespace {

template <class T, bool kCounts>
Choice choice() {
  return {reinterpret_cast<const void*>(&flash<T, RightSoftmax, kCounts>), T::kRows, T::kThreads,
          T::kSharedBytes};
}

template <bool kCounts>
Choice for_depth(std::int64_t head_dim) {
  if (head_dim <= 32) return choice<Tile<32, 128, 64>, kCounts>();
  if (head_dim <= 64) return choice<Tile<64, 128, 64>, kCounts>();
  if (head_dim <= 128) return choice<Tile<128, 128, 64>, kCounts>();
  return choice<Tile<256, 64, 32>, kCounts>();
}

}  // namespace

Choice right_kernel(const Problem& problem, bool counts) {
  return counts ? for_depth<true>(problem.head_dim) : for_depth<false>(problem.head_dim);
}

}  // namespace flashsim::flash_fp32
