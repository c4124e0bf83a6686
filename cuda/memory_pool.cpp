#include "cuda/memory_pool.hpp"

#include <cstdint>

#include "cuda/check.hpp"

namespace flashsim {
namespace {

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  cuda_check(cudaMemPoolGetAttribute(pool, which, &value), "cudaMemPoolGetAttribute");
  return value;
}

}  // namespace

MemoryPool::MemoryPool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {.type = cudaMemLocationTypeDevice, .id = device};
  cuda_check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  std::uint64_t keep = UINT64_MAX;
  cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
             "cudaMemPoolSetAttribute");
}

MemoryPool::~MemoryPool() {
  // What a failed run left behind is the driver's to clean up.
  if (pool_ != nullptr) (void)cudaMemPoolDestroy(pool_);
}

void* MemoryPool::take(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  cuda_check(cudaMallocFromPoolAsync(&memory, bytes, pool_, stream), "cudaMallocFromPoolAsync");
  return memory;
}

void MemoryPool::give_back(void* memory, cudaStream_t stream) { (void)cudaFreeAsync(memory, stream); }

std::size_t MemoryPool::peak() const {
  return static_cast<std::size_t>(attribute(pool_, cudaMemPoolAttrUsedMemHigh)) - base_;
}

void MemoryPool::start_peak() {
  std::uint64_t zero = 0;
  cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero), "cudaMemPoolSetAttribute");
  base_ = static_cast<std::size_t>(attribute(pool_, cudaMemPoolAttrUsedMemCurrent));
}

}  // namespace flashsim
