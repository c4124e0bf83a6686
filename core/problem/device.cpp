#include "core/problem/device.hpp"

#include "core/base/nearest.hpp"

namespace flashsim {

Result<CounterSource> counter_source_named(std::string_view name) {
  for (std::size_t i = 0; i < kCounterSources.size(); ++i) {
    if (kCounterSources[i] == name) return static_cast<CounterSource>(i);
  }
  return unknown_name("counter source", name, {kCounterSources.begin(), kCounterSources.end()});
}

}  // namespace flashsim
