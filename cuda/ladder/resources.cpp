#include "cuda/ladder/resources.hpp"

#include "cuda/check.hpp"

namespace flashsim {

KernelResources resources_of(const char* name, const void* function, int threads, std::size_t dynamic_shared,
                             std::int64_t blocks) {
  opt_in_to_shared(name, function, dynamic_shared);
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes");
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, function, threads, dynamic_shared),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return {.name = name,
          .registers_per_thread = attributes.numRegs,
          .local_memory_per_thread = Bytes(static_cast<std::int64_t>(attributes.localSizeBytes)),
          .shared_memory_per_block =
              Bytes(static_cast<std::int64_t>(attributes.sharedSizeBytes + dynamic_shared)),
          .threads_per_block = threads,
          .blocks = blocks,
          .blocks_per_sm = blocks_per_sm};
}

}  // namespace flashsim
