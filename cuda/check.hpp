// Every CUDA call is checked. Failures are thrown here and translated once, at the backend's door.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

namespace flashsim {

class CudaError : public std::runtime_error {
 public:
  explicit CudaError(cudaError_t code, const char* call)
      : std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code)), code_(code) {}
  [[nodiscard]] cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// Throws CudaError unless `code` is cudaSuccess. `call` is what the message names.
inline void cuda_check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw CudaError(code, call);
}

}  // namespace flashsim
