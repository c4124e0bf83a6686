// The kernels of 04 with a part switched off or broken: one for each switch and fault, and three depths,
// because they are run to be looked at and not to be fast.
#pragma once

#include "cuda/ladder/04_flash_tensor_kernels.hpp"

namespace flashsim::flash_tensor {

template <class T, class Softmax>
Plan broken_for_depth(const Problem& problem) {
  if (problem.head_dim <= 64) return plan<T, Tile64, Softmax>(problem);
  if (problem.head_dim <= 128) return plan<T, Tile128, Softmax>(problem);
  return plan<T, Tile256, Softmax>(problem);
}

template <class T, Fault kFault>
Plan faulty(const Problem& problem) {
  return broken_for_depth<T, SoftmaxSwitches<true, true, kFault>>(problem);
}

template <class T>
Plan broken_kernel(const Problem& problem, const Switches& switches) {
  switch (switches.fault) {
    case Fault::rescale_l_only: return faulty<T, Fault::rescale_l_only>(problem);
    case Fault::rescale_o_only: return faulty<T, Fault::rescale_o_only>(problem);
    case Fault::inverted_rescale: return faulty<T, Fault::inverted_rescale>(problem);
    case Fault::reset_per_tile: return faulty<T, Fault::reset_per_tile>(problem);
    case Fault::finite_mask: return faulty<T, Fault::finite_mask>(problem);
    case Fault::unmasked_padding: return faulty<T, Fault::unmasked_padding>(problem);
    case Fault::none: break;
  }
  if (switches.subtract_max) return broken_for_depth<T, SoftmaxSwitches<true, false, Fault::none>>(problem);
  // Nothing is subtracted, so nothing has to be rescaled either: r is 1 with and without the switch.
  return broken_for_depth<T, SoftmaxSwitches<false, true, Fault::none>>(problem);
}

}  // namespace flashsim::flash_tensor
