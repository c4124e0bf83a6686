// The stub: a build without the CUDA toolkit.
#include "cuda/backend.hpp"

namespace flashsim {

CudaDevices cuda_devices() { return {.missing = "this flashsim was built without CUDA"}; }

}  // namespace flashsim
