// The kernels of 04 as they should be, for each depth that a head dimension is padded to.
#include "cuda/ladder/04_flash_tensor_kernels.hpp"

namespace flashsim::flash_tensor {
namespace {

template <class T>
Plan for_depth(const Problem& problem) {
  if (problem.head_dim <= 32) return plan<T, Tile32, RightSoftmax>(problem);
  if (problem.head_dim <= 64) return plan<T, Tile64, RightSoftmax>(problem);
  if (problem.head_dim <= 96) return plan<T, Tile96, RightSoftmax>(problem);
  if (problem.head_dim <= 128) return plan<T, Tile128, RightSoftmax>(problem);
  return plan<T, Tile256, RightSoftmax>(problem);
}

}  // namespace

Plan right_kernel(const Problem& problem) {
  return problem.storage == NumberType::fp16 ? for_depth<__half>(problem) : for_depth<__nv_bfloat16>(problem);
}

}  // namespace flashsim::flash_tensor
