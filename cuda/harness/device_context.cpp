#include "cuda/harness/device_context.hpp"

#include <algorithm>
#include <cstdint>

#include "cuda/check.hpp"

namespace flashsim {
namespace {

/// Kept free for what isn't ours: the context's own needs, the cache flush, a buffer to convert in.
constexpr std::int64_t kSpareBytes = std::int64_t{1} << 30;

int on(int device) {
  cuda_check(cudaSetDevice(device), "cudaSetDevice");
  cuda_check(cudaFree(nullptr), "cudaFree");  // makes the context
  return device;
}

}  // namespace

DeviceContext::DeviceContext(int device) : device_(on(device)), inputs_(device), pool_(device) {
  cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  l2_bytes_ = static_cast<std::size_t>(properties.l2CacheSize);
}

DeviceContext::~DeviceContext() { (void)cudaStreamDestroy(stream_); }

void DeviceContext::wait() const { cuda_check(cudaStreamSynchronize(stream_), "kernel"); }

Bytes DeviceContext::room() {
  std::size_t free = 0;
  std::size_t all = 0;
  cuda_check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return Bytes(std::max<std::int64_t>(0, static_cast<std::int64_t>(free) - kSpareBytes));
}

}  // namespace flashsim
