// Thread blocks on the SMs of a machine: they start in launch order, as many at a time as fit, the next when
// one ends, each at its own pace, and what they load and store is played against the L2. From it come the HBM
// traffic that is left behind the cache, and the time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/account/clock.hpp"
#include "core/account/occupancy.hpp"
#include "core/account/tally.hpp"
#include "core/base/result.hpp"
#include "core/problem/habits.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// What is left of the SM traffic behind the L2.
struct AfterL2 {
  Flow hbm;
  Bytes waiting;          ///< stored, and still in the cache when the last kernel ends
  Bytes compulsory_read;  ///< each tile once that was not stored before: an endless cache
  Bytes uncached_read;    ///< SM reads, and what is added to in the L2: no cache
  [[nodiscard]] double hit_rate() const {
    return uncached_read == Bytes() ? 0 : 1 - ratio(hbm.read, uncached_read);
  }
};

/// One kernel of a run.
struct SimulatedKernel {
  std::string name;
  std::int64_t blocks_per_sm = 1;
  Flow hbm;               ///< after L2
  Seconds blocks;         ///< from the first block's start to the last one's end, memory never in the way
  double busy_share = 0;  ///< of the SMs' time in that
  Seconds total;          ///< with launch, and with memory where it takes longer
  std::string bound;      ///< the resource that sets it
};

struct ResourceTime {
  std::string resource;  ///< "tensor", "fma", "exponential", "sram", "l2", "hbm", "launch"
  Seconds time;          ///< it alone, spread over the whole machine
};

struct PredictedTime {
  Seconds total;
  std::string bound;  ///< of the kernel that takes longest
  std::vector<ResourceTime> resources;
  FlopsPerSecond rate;  ///< papers' FLOPs by it
  double share_of_peak = 0;
};

struct Simulation {
  AfterL2 after_l2;
  std::vector<SimulatedKernel> kernels;
  std::optional<PredictedTime> time;
  std::string no_time;  ///< why there is none
  std::int64_t tile_loads = 0;
};

/// Simulates `method`, whose kernels have the footprints of `occupancy` and whose account is `tally`.
/// `progress` hears how much is done, from 0 to 1. Errors: more tiles than can be told apart, more
/// steps than can be followed, more blocks an SM than it holds.
Result<Simulation> simulate(const Problem& problem, const Method& method, const Machine& machine,
                            Habits habits, std::span<const Occupancy> occupancy, const Tally& tally,
                            Flops paper_flops, const std::function<void(double)>& progress = {});

}  // namespace flashsim
