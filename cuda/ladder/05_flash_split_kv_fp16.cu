// The kernels of 05 on fp16.
#include "cuda/ladder/05_flash_split_kv_shapes.cuh"

namespace flashsim::split_kv {

AttentionPlan attention_fp16(const DeviceTask& task) { return for_task<__half>(task); }

}  // namespace flashsim::split_kv
