// The stub: a toolkit without CUPTI's range profiler.
#include "cuda/counters/counters.hpp"

namespace flashsim {

std::unique_ptr<Counters> open_counters(int, NoCounters& none) {
  none = {.why = "this flashsim was built without CUPTI's range profiler",
          .remedy = "build it with CUDA 12.6 or later, CUPTI among what is installed of it"};
  return nullptr;
}

}  // namespace flashsim
