// What the launch of a kernel costs that does nothing.
#pragma once

#include <cuda_runtime.h>

namespace flashsim {

struct LaunchCosts {
  double alone = 0;   ///< seconds between events around one, launched while the device is idle
  double queued = 0;  ///< the same behind other work, so that the host's own time doesn't show
  double in_row = 0;  ///< seconds for each of a thousand, one behind the other
};

/// Throws CudaError.
LaunchCosts measure_launches(int sms, cudaStream_t stream);

}  // namespace flashsim
