// Counters through CUPTI: what the chip can count of kCounters is settled when they are opened, and the range
// profiler is enabled only while something is counted.
#include <cstdlib>
#include <string_view>

#include <cuda_runtime.h>

#include "cuda/check.hpp"
#include "cuda/counters/counter_choice.hpp"
#include "cuda/counters/counters.hpp"
#include "cuda/counters/cupti_host.hpp"
#include "cuda/counters/cupti_library.hpp"
#include "cuda/counters/cupti_range.hpp"

namespace flashsim {
namespace {

CUcontext current_context() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned kDriver = 12000;
  cuda_check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, kDriver, cudaEnableDefault, &found),
             "cudaGetDriverEntryPointByVersion");
  CUcontext context = nullptr;
  if (found == cudaDriverEntryPointSuccess && entry != nullptr) {
    (void)reinterpret_cast<decltype(&::cuCtxGetCurrent)>(entry)(&context);
  }
  if (context == nullptr) throw NoCounters{.why = "the thread has no CUDA context", .remedy = ""};
  return context;
}

/// Later versions of CUPTI ask whether counters of the whole device, such as those of its memory, are wanted.
template <class Query>
void ask_for_device_counters(Query& query) {
  if constexpr (requires { query.bAllowDeviceLevelCounters; }) query.bAllowDeviceLevelCounters = true;
}

/// CUPTI's profiler, initialised for as long as it lives.
class CuptiProfiler {
 public:
  explicit CuptiProfiler(const Cupti& cupti) : cupti_(cupti) {
    CUpti_Profiler_Initialize_Params start{.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    cupti_.check(cupti_.initialize(&start), "cuptiProfilerInitialize");
  }
  ~CuptiProfiler() {
    CUpti_Profiler_DeInitialize_Params end{.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE};
    (void)cupti_.deinitialize(&end);
  }
  CuptiProfiler(const CuptiProfiler&) = delete;
  CuptiProfiler& operator=(const CuptiProfiler&) = delete;

  [[nodiscard]] Chip chip(int device, CUcontext context) const {
    CUpti_Device_GetChipName_Params name{.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE,
                                         .deviceIndex = static_cast<std::size_t>(device)};
    cupti_.check(cupti_.chip_name(&name), "cuptiDeviceGetChipName");
    CUpti_Profiler_GetCounterAvailability_Params available{
        .structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE, .ctx = context};
    ask_for_device_counters(available);
    cupti_.check(cupti_.counter_availability(&available), "cuptiProfilerGetCounterAvailability");
    Chip chip{.name = name.pChipName,
              .availability = std::vector<std::uint8_t>(available.counterAvailabilityImageSize)};
    available.pCounterAvailabilityImage = chip.availability.data();
    cupti_.check(cupti_.counter_availability(&available), "cuptiProfilerGetCounterAvailability");
    return chip;
  }

 private:
  const Cupti& cupti_;
};

class CuptiCounters final : public Counters {
 public:
  explicit CuptiCounters(int device)
      : cupti_(cupti()),
        profiler_(cupti_),
        chip_(profiler_.chip(device, current_context())),
        host_(cupti_, chip_) {
    // A host that has refused a metric refuses all that follow, so each is tried on a host of its own.
    chosen_ = choose_counters(
        host_.listed(), [this](const std::string& metric) { return CuptiHost(cupti_, chip_).add({metric}); });
    // What is added in one call is counted in as few runs as it takes, apart from what is added in another.
    for (const std::vector<std::string>& group : groups_of(chosen_)) {
      if (!host_.add(group)) {
        throw NoCounters{.why = "CUPTI can't count all that it lists for " + chip_.name, .remedy = ""};
      }
      metrics_.insert(metrics_.end(), group.begin(), group.end());
    }
    if (metrics_.empty()) {
      throw NoCounters{.why = "CUPTI counts none of what is asked for on " + chip_.name, .remedy = ""};
    }
    config_image_ = host_.config_image();
    passes_ = host_.passes(config_image_);
  }

  std::vector<CounterReading> count(const std::function<void()>& prepare,
                                    const std::function<void()>& work) override {
    std::vector<std::uint8_t> data;
    {
      CuptiRange range(cupti_, current_context());
      data = range.collect(metrics_, config_image_, passes_, prepare, work);
    }
    return readings_of(chosen_, [&](const std::string& metric) { return host_.value(data, metric); });
  }

 private:
  const Cupti& cupti_;
  CuptiProfiler profiler_;
  Chip chip_;
  CuptiHost host_;
  std::vector<ChosenCounter> chosen_;
  std::vector<std::string> metrics_;
  std::vector<std::uint8_t> config_image_;
  std::size_t passes_ = 0;
};

}  // namespace

std::unique_ptr<Counters> open_counters(int device, NoCounters& none) {
  const char* wish = std::getenv("FLASHSIM_COUNTERS");
  if (wish != nullptr && std::string_view(wish) == "denied") {
    none = counters_denied();
    return nullptr;
  }
  try {
    return std::make_unique<CuptiCounters>(device);
  } catch (const NoCounters& why) {
    none = why;
  } catch (const CudaError& error) {
    none = {.why = error.what(), .remedy = ""};
  }
  return nullptr;
}

}  // namespace flashsim
