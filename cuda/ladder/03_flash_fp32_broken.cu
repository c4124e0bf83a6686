// The kernels of 03 with a part switched off or broken: one for each switch and fault, and two depths,
// because they are run to be looked at and not to be fast.
#include "cuda/ladder/03_flash_fp32_kernels.hpp"

namespace flashsim::flash_fp32 {
namespace {

template <class Softmax>
Plan for_depth(const Problem& problem) {
  return problem.head_dim <= 128 ? plan<Tile<128, 128, 64>, Softmax, false>(problem)
                                 : plan<Tile<256, 64, 32>, Softmax, false>(problem);
}

template <Fault kFault>
Plan faulty(const Problem& problem) {
  return for_depth<SoftmaxSwitches<true, true, kFault>>(problem);
}

}  // namespace

Plan broken_kernel(const Problem& problem, const Switches& switches) {
  switch (switches.fault) {
    case Fault::rescale_l_only: return faulty<Fault::rescale_l_only>(problem);
    case Fault::rescale_o_only: return faulty<Fault::rescale_o_only>(problem);
    case Fault::inverted_rescale: return faulty<Fault::inverted_rescale>(problem);
    case Fault::reset_per_tile: return faulty<Fault::reset_per_tile>(problem);
    case Fault::finite_mask: return faulty<Fault::finite_mask>(problem);
    case Fault::unmasked_padding: return faulty<Fault::unmasked_padding>(problem);
    case Fault::none: break;
  }
  if (switches.subtract_max) return for_depth<SoftmaxSwitches<true, false, Fault::none>>(problem);
  // Nothing is subtracted, so nothing has to be rescaled either: r is 1 with and without the switch.
  return for_depth<SoftmaxSwitches<false, true, Fault::none>>(problem);
}

}  // namespace flashsim::flash_fp32
