#include "core/problem/habits.hpp"

#include <algorithm>
#include <vector>

#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

template <class Enum, std::size_t n>
Result<Enum> named(const std::string& what, std::string_view name,
                   const std::array<std::string_view, n>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  return unknown_name(what, std::string(name), std::vector<std::string>(names.begin(), names.end()));
}

}  // namespace

Result<LaunchOrder> launch_order_named(std::string_view name) {
  return named<LaunchOrder>("launch order", name, kLaunchOrders);
}

Result<KeyOrder> key_order_named(std::string_view name) {
  return named<KeyOrder>("key order", name, kKeyOrders);
}

Result<Overlap> overlap_named(std::string_view name) { return named<Overlap>("overlap", name, kOverlaps); }

}  // namespace flashsim
