// The kernels "gradients" and "key_value_gradients" of 06 for each depth and type.
#include "cuda/ladder/06_flash_backward_gradients.cuh"

namespace flashsim::flash_backward {

template Plan<__half> gradients_plan<__half, false>(const Problem&, bool);
template Plan<__nv_bfloat16> gradients_plan<__nv_bfloat16, false>(const Problem&, bool);

}  // namespace flashsim::flash_backward
