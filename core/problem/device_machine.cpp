#include "core/problem/device_machine.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

namespace flashsim {
namespace {

constexpr std::string_view kMeasured = "-measured";
constexpr double kMostApart = 0.1;

/// "-nvidia-h200-": whole words of it can be looked for.
std::string as_words(std::string_view name) {
  std::string words = "-";
  for (const char c : name) {
    words += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words + "-";
}

/// The name of the chip in a machine's name: without what tells its parts and its rates apart.
std::string_view family_of(std::string_view machine) {
  if (machine.ends_with(kMeasured)) machine.remove_suffix(kMeasured.size());
  constexpr std::string_view kSmall = "-40";
  if (machine == "a100-40") machine.remove_suffix(kSmall.size());
  return machine;
}

}  // namespace

std::optional<Machine> machine_of_device(const std::string& name, Bytes memory, WantedRates wanted) {
  const std::string words = as_words(name);
  const auto apart = [&](const Machine& machine) { return std::fabs(ratio(memory, machine.memory) - 1); };
  const auto is_measured = [](const Machine& machine) { return machine.rates == "measured"; };
  std::optional<Machine> best;
  for (const Machine& machine : built_in_machines()) {
    if (words.find(as_words(family_of(machine.name))) == std::string::npos) continue;
    if (apart(machine) > kMostApart) continue;
    if (wanted == WantedRates::datasheet && is_measured(machine)) continue;
    const bool better = !best || (is_measured(machine) && !is_measured(*best)) ||
                        (is_measured(machine) == is_measured(*best) && apart(machine) < apart(*best));
    if (better) best = machine;
  }
  return best;
}

}  // namespace flashsim
