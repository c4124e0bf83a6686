#include "cuda/counters/cupti_range.hpp"

#include <cuda_runtime.h>

#include "cuda/check.hpp"

namespace flashsim {

CuptiRange::CuptiRange(const Cupti& cupti, CUcontext context) : cupti_(cupti) {
  CUpti_RangeProfiler_Enable_Params enable{.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE,
                                           .ctx = context};
  cupti_.check(cupti_.range_enable(&enable), "cuptiRangeProfilerEnable");
  range_ = enable.pRangeProfilerObject;
}

CuptiRange::~CuptiRange() {
  if (pushed_) {
    CUpti_RangeProfiler_PopRange_Params pop{.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
                                            .pRangeProfilerObject = range_};
    (void)cupti_.range_pop(&pop);
  }
  if (started_) {
    CUpti_RangeProfiler_Stop_Params stop{.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
                                         .pRangeProfilerObject = range_};
    (void)cupti_.range_stop(&stop);
  }
  CUpti_RangeProfiler_Disable_Params disable{.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE,
                                             .pRangeProfilerObject = range_};
  (void)cupti_.range_disable(&disable);
}

std::vector<std::uint8_t> CuptiRange::empty_counter_data(const std::vector<std::string>& metrics) const {
  std::vector<const char*> names;
  for (const std::string& metric : metrics) names.push_back(metric.c_str());
  CUpti_RangeProfiler_GetCounterDataSize_Params size{
      .structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
      .pRangeProfilerObject = range_,
      .pMetricNames = names.data(),
      .numMetrics = names.size(),
      .maxNumOfRanges = 1,
      .maxNumRangeTreeNodes = 1};
  cupti_.check(cupti_.range_data_size(&size), "cuptiRangeProfilerGetCounterDataSize");
  std::vector<std::uint8_t> data(size.counterDataSize);
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params clear{
      .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
      .pRangeProfilerObject = range_,
      .counterDataSize = data.size(),
      .pCounterData = data.data()};
  cupti_.check(cupti_.range_data_initialize(&clear), "cuptiRangeProfilerCounterDataImageInitialize");
  return data;
}

void CuptiRange::start_pass() {
  CUpti_RangeProfiler_Start_Params start{.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
                                         .pRangeProfilerObject = range_};
  cupti_.check(cupti_.range_start(&start), "cuptiRangeProfilerStart");
  started_ = true;
  CUpti_RangeProfiler_PushRange_Params push{.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
                                            .pRangeProfilerObject = range_,
                                            .pRangeName = "work"};
  cupti_.check(cupti_.range_push(&push), "cuptiRangeProfilerPushRange");
  pushed_ = true;
}

bool CuptiRange::end_pass() {
  CUpti_RangeProfiler_PopRange_Params pop{.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
                                          .pRangeProfilerObject = range_};
  pushed_ = false;
  cupti_.check(cupti_.range_pop(&pop), "cuptiRangeProfilerPopRange");
  CUpti_RangeProfiler_Stop_Params stop{.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
                                       .pRangeProfilerObject = range_};
  started_ = false;
  cupti_.check(cupti_.range_stop(&stop), "cuptiRangeProfilerStop");
  return stop.isAllPassSubmitted != 0;
}

std::vector<std::uint8_t> CuptiRange::collect(const std::vector<std::string>& metrics,
                                              const std::vector<std::uint8_t>& config_image,
                                              std::size_t passes, const std::function<void()>& prepare,
                                              const std::function<void()>& work) {
  std::vector<std::uint8_t> data = empty_counter_data(metrics);
  CUpti_RangeProfiler_SetConfig_Params config{.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
                                              .pRangeProfilerObject = range_,
                                              .configSize = config_image.size(),
                                              .pConfig = config_image.data(),
                                              .counterDataImageSize = data.size(),
                                              .pCounterDataImage = data.data(),
                                              .range = CUPTI_UserRange,
                                              .replayMode = CUPTI_UserReplay,
                                              .maxRangesPerPass = 1,
                                              .numNestingLevels = 1,
                                              .minNestingLevel = 1,
                                              .passIndex = 0,
                                              .targetNestingLevel = 1};
  cupti_.check(cupti_.range_set_config(&config), "cuptiRangeProfilerSetConfig");

  bool last = false;
  for (std::size_t pass = 0; !last; ++pass) {
    if (pass > passes) throw NoCounters{.why = "CUPTI asks for more passes than it announced", .remedy = ""};
    prepare();
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    start_pass();
    work();
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    last = end_pass();
  }

  CUpti_RangeProfiler_DecodeData_Params decode{
      .structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE, .pRangeProfilerObject = range_};
  cupti_.check(cupti_.range_decode(&decode), "cuptiRangeProfilerDecodeData");
  CUpti_RangeProfiler_GetCounterDataInfo_Params info{
      .structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE,
      .pCounterDataImage = data.data(),
      .counterDataImageSize = data.size()};
  cupti_.check(cupti_.range_data_info(&info), "cuptiRangeProfilerGetCounterDataInfo");
  if (decode.numOfRangeDropped != 0 || info.numTotalRanges != 1) {
    throw NoCounters{.why = "CUPTI lost what it counted", .remedy = ""};
  }
  return data;
}

}  // namespace flashsim
