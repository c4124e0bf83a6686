#include "core/problem/switches.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

Error means_nothing(const std::string& what, const AlgorithmFacts& facts, const char* why,
                    bool AlgorithmFacts::*needed) {
  std::vector<std::string_view> others;
  for (const AlgorithmFacts& each : kAlgorithms) {
    if (each.*needed) others.push_back(each.name);
  }
  return {fmt::format("{} means nothing for {}, which {}", what, facts.name, why),
          fmt::format("choose one of {}", fmt::join(others, ", "))};
}

}  // namespace

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
  if (!switches.rescale && !facts.rescales) {
    return means_nothing("--no-rescale", facts, "rescales nothing", &AlgorithmFacts::rescales);
  }
  for (const FaultFacts& fault : kFaults) {
    if (fault.fault != switches.fault) continue;
    const std::string what = fmt::format("--fault {}", fault.name);
    if (fault.scope == FaultScope::online && !facts.online) {
      return means_nothing(what, facts, "has no online softmax", &AlgorithmFacts::online);
    }
    if (fault.scope == FaultScope::tiled && !facts.tiled) {
      return means_nothing(what, facts, "pads no tiles", &AlgorithmFacts::tiled);
    }
  }
  return std::nullopt;
}

}  // namespace flashsim
