// The part of CUPTI that runs on the GPU: its range profiler, enabled on a context, around one range of work
// that is run again for each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/counters/cupti_library.hpp"

namespace flashsim {

/// Enabled for as long as it lives. Every function throws NoCounters where CUPTI refuses.
class CuptiRange {
 public:
  CuptiRange(const Cupti& cupti, CUcontext context);
  ~CuptiRange();
  CuptiRange(const CuptiRange&) = delete;
  CuptiRange& operator=(const CuptiRange&) = delete;

  /// The raw data of one range for `metrics`, from as many passes as `config_image` needs. Before each,
  /// `prepare` is called, and the device is waited for on both sides of `work`. Throws what they throw, and
  /// CudaError.
  std::vector<std::uint8_t> collect(const std::vector<std::string>& metrics,
                                    const std::vector<std::uint8_t>& config_image, std::size_t passes,
                                    const std::function<void()>& prepare, const std::function<void()>& work);

 private:
  [[nodiscard]] std::vector<std::uint8_t> empty_counter_data(const std::vector<std::string>& metrics) const;
  void start_pass();
  /// Whether it was the last one.
  bool end_pass();

  const Cupti& cupti_;
  CUpti_RangeProfiler_Object* range_ = nullptr;
  bool started_ = false;  ///< and so it must be stopped before it is disabled
  bool pushed_ = false;
};

}  // namespace flashsim
