// The kernels of 03 as they should be, for each depth that a head dimension is padded to.
#include "cuda/ladder/03_flash_fp32_kernels.hpp"

namespace flashsim::flash_fp32 {
namespace {

template <bool kCounts>
Plan for_depth(const Problem& problem) {
  if (problem.head_dim <= 32) return plan<Tile<32, 128, 64>, RightSoftmax, kCounts>(problem);
  if (problem.head_dim <= 64) return plan<Tile<64, 128, 64>, RightSoftmax, kCounts>(problem);
  if (problem.head_dim <= 128) return plan<Tile<128, 128, 64>, RightSoftmax, kCounts>(problem);
  return plan<Tile<256, 64, 32>, RightSoftmax, kCounts>(problem);
}

}  // namespace

Plan right_kernel(const Problem& problem, bool counts) {
  return counts ? for_depth<true>(problem) : for_depth<false>(problem);
}

}  // namespace flashsim::flash_fp32
