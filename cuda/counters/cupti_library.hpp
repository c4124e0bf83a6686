// CUPTI's functions, taken from its library while the program runs, and its errors in our words.
#pragma once

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include "cuda/counters/counters.hpp"

namespace flashsim {

/// Each by its name in CUPTI without the prefix. None is null.
struct Cupti {
  decltype(&::cuptiGetErrorMessage) error_message = nullptr;
  decltype(&::cuptiProfilerInitialize) initialize = nullptr;
  decltype(&::cuptiProfilerDeInitialize) deinitialize = nullptr;
  decltype(&::cuptiDeviceGetChipName) chip_name = nullptr;
  decltype(&::cuptiProfilerGetCounterAvailability) counter_availability = nullptr;

  decltype(&::cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&::cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
  decltype(&::cuptiProfilerHostGetBaseMetrics) host_base_metrics = nullptr;
  decltype(&::cuptiProfilerHostConfigAddMetrics) host_add_metrics = nullptr;
  decltype(&::cuptiProfilerHostGetConfigImageSize) host_config_image_size = nullptr;
  decltype(&::cuptiProfilerHostGetConfigImage) host_config_image = nullptr;
  decltype(&::cuptiProfilerHostGetNumOfPasses) host_passes = nullptr;
  decltype(&::cuptiProfilerHostEvaluateToGpuValues) host_evaluate = nullptr;

  decltype(&::cuptiRangeProfilerEnable) range_enable = nullptr;
  decltype(&::cuptiRangeProfilerDisable) range_disable = nullptr;
  decltype(&::cuptiRangeProfilerGetCounterDataSize) range_data_size = nullptr;
  decltype(&::cuptiRangeProfilerCounterDataImageInitialize) range_data_initialize = nullptr;
  decltype(&::cuptiRangeProfilerSetConfig) range_set_config = nullptr;
  decltype(&::cuptiRangeProfilerStart) range_start = nullptr;
  decltype(&::cuptiRangeProfilerStop) range_stop = nullptr;
  decltype(&::cuptiRangeProfilerPushRange) range_push = nullptr;
  decltype(&::cuptiRangeProfilerPopRange) range_pop = nullptr;
  decltype(&::cuptiRangeProfilerDecodeData) range_decode = nullptr;
  decltype(&::cuptiRangeProfilerGetCounterDataInfo) range_data_info = nullptr;

  /// Throws NoCounters unless `result` is CUPTI_SUCCESS. `call` is what the message names.
  void check(CUptiResult result, const char* call) const;
};

/// The functions of the first CUPTI that is found: FLASHSIM_CUPTI's, the loader's, the toolkit's. Throws
/// NoCounters. The library stays open until the program ends.
const Cupti& cupti();

/// What is said where the driver keeps the counters to itself.
NoCounters counters_denied();

}  // namespace flashsim
