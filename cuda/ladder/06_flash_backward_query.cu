// The kernel "query_gradient" of 06 for each depth and type.
#include "cuda/ladder/06_flash_backward_query.cuh"

namespace flashsim::flash_backward {

template Plan<__half> query_gradient_plan<__half, false>(const Problem&);
template Plan<__nv_bfloat16> query_gradient_plan<__nv_bfloat16, false>(const Problem&);

}  // namespace flashsim::flash_backward
