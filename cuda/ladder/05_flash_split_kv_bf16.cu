// The kernels of 05 on bf16.
#include "cuda/ladder/05_flash_split_kv_shapes.cuh"

namespace flashsim::split_kv {

AttentionPlan attention_bf16(const DeviceTask& task) { return for_task<__nv_bfloat16>(task); }

}  // namespace flashsim::split_kv
