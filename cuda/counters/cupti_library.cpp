#include "cuda/counters/cupti_library.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "cuda/library/dynamic_library.hpp"

namespace flashsim {
namespace {

constexpr const char* kRemedy =
    "install CUPTI, which comes with the CUDA toolkit, or name its library in FLASHSIM_CUPTI";

DynamicLibrary open_library() {
  const std::array<const char*, 6> names{std::getenv("FLASHSIM_CUPTI"),
                                         "libcupti.so.13",
                                         "libcupti.so.12",
                                         "libcupti.so",
                                         "/usr/local/cuda/lib64/libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
  std::string why_not;
  auto library = DynamicLibrary::open(names, why_not);
  if (!library) {
    std::string tried;
    for (const char* name : names) {
      if (name != nullptr && *name != '\0') tried += (tried.empty() ? "" : ", ") + std::string(name);
    }
    throw NoCounters{.why = "CUPTI was not found (tried " + tried + ")", .remedy = kRemedy};
  }
  return std::move(*library);
}

template <class F>
void take(const DynamicLibrary& library, const char* name, F*& function) {
  function = library.function<F>(name);
  if (function == nullptr) {
    throw NoCounters{.why = std::string("the CUPTI that was found has no ") + name,
                     .remedy = "name the library of CUDA 12.6 or later in FLASHSIM_CUPTI"};
  }
}

Cupti functions_of(const DynamicLibrary& library) {
  Cupti c;
  take(library, "cuptiGetErrorMessage", c.error_message);
  take(library, "cuptiProfilerInitialize", c.initialize);
  take(library, "cuptiProfilerDeInitialize", c.deinitialize);
  take(library, "cuptiDeviceGetChipName", c.chip_name);
  take(library, "cuptiProfilerGetCounterAvailability", c.counter_availability);
  take(library, "cuptiProfilerHostInitialize", c.host_initialize);
  take(library, "cuptiProfilerHostDeinitialize", c.host_deinitialize);
  take(library, "cuptiProfilerHostGetBaseMetrics", c.host_base_metrics);
  take(library, "cuptiProfilerHostConfigAddMetrics", c.host_add_metrics);
  take(library, "cuptiProfilerHostGetConfigImageSize", c.host_config_image_size);
  take(library, "cuptiProfilerHostGetConfigImage", c.host_config_image);
  take(library, "cuptiProfilerHostGetNumOfPasses", c.host_passes);
  take(library, "cuptiProfilerHostEvaluateToGpuValues", c.host_evaluate);
  take(library, "cuptiRangeProfilerEnable", c.range_enable);
  take(library, "cuptiRangeProfilerDisable", c.range_disable);
  take(library, "cuptiRangeProfilerGetCounterDataSize", c.range_data_size);
  take(library, "cuptiRangeProfilerCounterDataImageInitialize", c.range_data_initialize);
  take(library, "cuptiRangeProfilerSetConfig", c.range_set_config);
  take(library, "cuptiRangeProfilerStart", c.range_start);
  take(library, "cuptiRangeProfilerStop", c.range_stop);
  take(library, "cuptiRangeProfilerPushRange", c.range_push);
  take(library, "cuptiRangeProfilerPopRange", c.range_pop);
  take(library, "cuptiRangeProfilerDecodeData", c.range_decode);
  take(library, "cuptiRangeProfilerGetCounterDataInfo", c.range_data_info);
  return c;
}

/// CUPTI's words without the space, full stop and new line that some of them end in.
std::string_view sentence(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const auto last = text.find_last_not_of(" .");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

struct OpenCupti {
  OpenCupti() : library(open_library()), functions(functions_of(library)) {}
  DynamicLibrary library;
  Cupti functions;
};

}  // namespace

void Cupti::check(CUptiResult result, const char* call) const {
  if (result == CUPTI_SUCCESS) return;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) throw counters_denied();
  if (result == CUPTI_ERROR_INVALID_CHIP_NAME) {
    throw NoCounters{.why = "the CUPTI that was found doesn't know this chip",
                     .remedy = "name the library of a later CUDA in FLASHSIM_CUPTI"};
  }
  const char* text = nullptr;
  if (error_message(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  throw NoCounters{.why = std::string(call) + ": " + std::string(sentence(text)), .remedy = ""};
}

const Cupti& cupti() {
  // Never closed: it hooks into the driver, which may call it until the very end.
  static const OpenCupti* const open = new OpenCupti;
  return open->functions;
}

NoCounters counters_denied() {
  return {.why = "the driver keeps the GPU's counters for administrators",
          .remedy =
              "run as root or with CAP_SYS_ADMIN, or load the driver with "
              "NVreg_RestrictProfilingToAdminUsers=0"};
}

}  // namespace flashsim
