// The kernels of 03 with a part switched off or broken: one for each switch and fault, and two depths,
// because they are run to be looked at and not to be fast.
#include "cuda/ladder/03_flash_fp32.cuh"
#include "cuda/ladder/03_flash_fp32_kernels.hpp"

namespace flashsim::flash_fp32 {
namespace {

template <class Softmax>
Choice for_depth(std::int64_t head_dim) {
  const auto choice = []<class T>(T) -> Choice {
    return {reinterpret_cast<const void*>(&flash<T, Softmax, false>), T::kRows, T::kThreads, T::kSharedBytes};
  };
  return head_dim <= 128 ? choice(Tile<128, 128, 64>{}) : choice(Tile<256, 64, 32>{});
}

template <Fault kFault>
Choice faulty(std::int64_t head_dim) {
  return for_depth<SoftmaxSwitches<true, true, kFault>>(head_dim);
}

}  // namespace

Choice broken_kernel(const Problem& problem, const Switches& switches) {
  const std::int64_t d = problem.head_dim;
  switch (switches.fault) {
    case Fault::rescale_l_only: return faulty<Fault::rescale_l_only>(d);
    case Fault::rescale_o_only: return faulty<Fault::rescale_o_only>(d);
    case Fault::inverted_rescale: return faulty<Fault::inverted_rescale>(d);
    case Fault::reset_per_tile: return faulty<Fault::reset_per_tile>(d);
    case Fault::finite_mask: return faulty<Fault::finite_mask>(d);
    case Fault::unmasked_padding: return faulty<Fault::unmasked_padding>(d);
    case Fault::none: break;
  }
  if (switches.subtract_max) return for_depth<SoftmaxSwitches<true, false, Fault::none>>(d);
  // Nothing is subtracted, so nothing has to be rescaled either: r is 1 with and without the switch.
  return for_depth<SoftmaxSwitches<false, true, Fault::none>>(d);
}

}  // namespace flashsim::flash_fp32
