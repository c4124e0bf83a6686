#include "core/attention/switches.hpp"

#include <vector>

#include <fmt/format.h>

#include "core/base/nearest.hpp"

namespace flashsim {

Result<Fault> fault_named(std::string_view name) {
  std::vector<std::string> known;
  for (const FaultFacts& facts : kFaults) {
    if (facts.name == name) return facts.fault;
    known.emplace_back(facts.name);
  }
  return unknown_name("fault", name, known);
}

std::string why_broken(const Switches& switches) {
  if (!switches.subtract_max) {
    return "the maximum was not subtracted, so exp(s) overflows at large scores and vanishes at very "
           "negative "
           "ones";
  }
  for (const FaultFacts& facts : kFaults) {
    if (facts.fault == switches.fault) return std::string(facts.why);
  }
  if (!switches.rescale) {
    return "r was 1, so what earlier tiles left in l and O keeps its old reference wherever the maximum rose";
  }
  if (switches.accumulate_in_storage) {
    return "sums were rounded to the storage type at every addition: they stop growing where a term is less "
           "than half a unit of their last place, and overflow at the type's largest number";
  }
  return "";
}

Outcome check_switches(const Switches& switches, Algorithm algorithm) {
  const AlgorithmFacts& facts = facts_of(algorithm);
  if (facts.tiled) return std::nullopt;
  std::string what;
  if (!switches.rescale) what = "--no-rescale";
  for (const FaultFacts& fault : kFaults) {
    if (fault.fault == switches.fault && fault.tiled) what = fmt::format("--fault {}", fault.name);
  }
  if (what.empty()) return std::nullopt;
  return Error{fmt::format("{} means nothing for {}, which has no online softmax", what, facts.name),
               "choose a tiled algorithm: flash1 or flash2"};
}

}  // namespace flashsim
