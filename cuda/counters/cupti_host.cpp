#include "cuda/counters/cupti_host.hpp"

#include <span>

namespace flashsim {

CuptiHost::CuptiHost(const Cupti& cupti, const Chip& chip) : cupti_(cupti) {
  CUpti_Profiler_Host_Initialize_Params start{
      .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
      .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
      .pChipName = chip.name.c_str(),
      .pCounterAvailabilityImage = chip.availability.empty() ? nullptr : chip.availability.data()};
  cupti_.check(cupti_.host_initialize(&start), "cuptiProfilerHostInitialize");
  host_ = start.pHostObject;
}

CuptiHost::~CuptiHost() {
  CUpti_Profiler_Host_Deinitialize_Params end{
      .structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE, .pHostObject = host_};
  (void)cupti_.host_deinitialize(&end);
}

std::set<std::string, std::less<>> CuptiHost::listed() const {
  CUpti_Profiler_Host_GetBaseMetrics_Params list{
      .structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .metricType = CUPTI_METRIC_TYPE_COUNTER};
  cupti_.check(cupti_.host_base_metrics(&list), "cuptiProfilerHostGetBaseMetrics");
  const std::span names(list.ppMetricNames, list.numMetrics);
  return {names.begin(), names.end()};
}

bool CuptiHost::add(const std::vector<std::string>& metrics) {
  std::vector<const char*> names;
  for (const std::string& metric : metrics) names.push_back(metric.c_str());
  CUpti_Profiler_Host_ConfigAddMetrics_Params adding{
      .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .ppMetricNames = names.data(),
      .numMetrics = names.size()};
  const CUptiResult result = cupti_.host_add_metrics(&adding);
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) throw counters_denied();
  return result == CUPTI_SUCCESS;
}

std::vector<std::uint8_t> CuptiHost::config_image() const {
  CUpti_Profiler_Host_GetConfigImageSize_Params size{
      .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE, .pHostObject = host_};
  cupti_.check(cupti_.host_config_image_size(&size), "cuptiProfilerHostGetConfigImageSize");
  std::vector<std::uint8_t> image(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params get{
      .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .configImageSize = image.size(),
      .pConfigImage = image.data()};
  cupti_.check(cupti_.host_config_image(&get), "cuptiProfilerHostGetConfigImage");
  return image;
}

std::size_t CuptiHost::passes(std::vector<std::uint8_t>& config_image) const {
  CUpti_Profiler_Host_GetNumOfPasses_Params count{
      .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
      .configImageSize = config_image.size(),
      .pConfigImage = config_image.data()};
  cupti_.check(cupti_.host_passes(&count), "cuptiProfilerHostGetNumOfPasses");
  return count.numOfPasses;
}

std::optional<double> CuptiHost::value(const std::vector<std::uint8_t>& counter_data,
                                       const std::string& metric) const {
  const char* name = metric.c_str();
  double value = 0;
  CUpti_Profiler_Host_EvaluateToGpuValues_Params evaluate{
      .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
      .pHostObject = host_,
      .pCounterDataImage = counter_data.data(),
      .counterDataImageSize = counter_data.size(),
      .rangeIndex = 0,
      .ppMetricNames = &name,
      .numMetrics = 1,
      .pMetricValues = &value};
  if (cupti_.host_evaluate(&evaluate) != CUPTI_SUCCESS) return std::nullopt;
  return value;
}

}  // namespace flashsim
