// The part of CUPTI that needs no GPU: what a chip can count, how its counters are set up for some metrics,
// and what the counters' raw data mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda/counters/cupti_library.hpp"

namespace flashsim {

/// A chip as CUPTI knows it.
struct Chip {
  std::string name;                        ///< "GH100"
  std::vector<std::uint8_t> availability;  ///< the image that the driver gave; empty: assume all
};

/// Every function throws NoCounters where CUPTI refuses.
class CuptiHost {
 public:
  /// `chip` must outlive it.
  CuptiHost(const Cupti& cupti, const Chip& chip);
  ~CuptiHost();
  CuptiHost(const CuptiHost&) = delete;
  CuptiHost& operator=(const CuptiHost&) = delete;

  /// The base names of all that the chip counts.
  [[nodiscard]] std::set<std::string, std::less<>> listed() const;

  /// False where CUPTI can't set the chip up for one of them; this host then takes no more metrics.
  [[nodiscard]] bool add(const std::vector<std::string>& metrics);

  /// How the chip is to be set up for all that was added.
  [[nodiscard]] std::vector<std::uint8_t> config_image() const;

  /// How often the work must run for it.
  [[nodiscard]] std::size_t passes(std::vector<std::uint8_t>& config_image) const;

  /// A metric's value in the first range of `counter_data`; absent where CUPTI can't tell.
  [[nodiscard]] std::optional<double> value(const std::vector<std::uint8_t>& counter_data,
                                            const std::string& metric) const;

 private:
  const Cupti& cupti_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

}  // namespace flashsim
