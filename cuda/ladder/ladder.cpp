#include "cuda/ladder/ladder.hpp"

namespace flashsim {

const Rung& rung_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::standard: return kStandardRung;
    case Kernel::standard_cublas: return kStandardCublasRung;
    case Kernel::flash_fp32: return kFlashFp32Rung;
    case Kernel::flash_tensor: return kFlashTensorRung;
    case Kernel::flash_split_kv: return kFlashSplitKvRung;
    case Kernel::flash_backward: return kFlashBackwardRung;
  }
  return kStandardRung;
}

}  // namespace flashsim
