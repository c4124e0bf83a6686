// The broken kernels of 04 in bf16.
#include "cuda/ladder/04_flash_tensor_broken.cuh"

namespace flashsim::flash_tensor {

template Plan broken_kernel<__nv_bfloat16>(const Problem&, const Switches&);

}  // namespace flashsim::flash_tensor
