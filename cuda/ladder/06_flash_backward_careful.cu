// The kernels of 06 over pairs once more, for inputs that hold NaN or infinities.
#include "cuda/ladder/06_flash_backward_gradients.cuh"
#include "cuda/ladder/06_flash_backward_query.cuh"

namespace flashsim::flash_backward {

template Plan<__half> gradients_plan<__half, true>(const Problem&, bool);
template Plan<__nv_bfloat16> gradients_plan<__nv_bfloat16, true>(const Problem&, bool);
template Plan<__half> query_gradient_plan<__half, true>(const Problem&);
template Plan<__nv_bfloat16> query_gradient_plan<__nv_bfloat16, true>(const Problem&);

}  // namespace flashsim::flash_backward
