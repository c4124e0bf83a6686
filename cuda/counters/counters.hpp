// The GPU's own counters, read in this process around some work. The build puts one of two files behind it:
// counters_cupti.cpp, or counters_none.cpp where the toolkit has no range profiler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/problem/device.hpp"

namespace flashsim {

/// Why there are no counters, and what would help.
struct NoCounters {
  std::string why;     ///< one sentence
  std::string remedy;  ///< one sentence, or empty
};

class Counters {
 public:
  virtual ~Counters() = default;

  /// Counts what `work` does. `work` launches on the current context and is called once for each pass that
  /// the counters need, `prepare` before each of them; what `prepare` does isn't counted. Gives a reading for
  /// each of kCounters, in that order. Throws CudaError, and NoCounters where the driver refuses at this
  /// point.
  virtual std::vector<CounterReading> count(const std::function<void()>& prepare,
                                            const std::function<void()>& work) = 0;
};

/// The counters of the device of the current context, which must have been made (cudaFree(0) makes it). Null
/// where there are none, and then `none` says why: no library, no permission, no such chip.
///
/// The environment is asked for FLASHSIM_CUPTI, the path of CUPTI's library where it lies in no usual place,
/// and for FLASHSIM_COUNTERS: "denied" gives what a driver without permission gives, so that a machine with
/// permission can show it.
std::unique_ptr<Counters> open_counters(int device, NoCounters& none);

}  // namespace flashsim
