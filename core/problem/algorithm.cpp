#include "core/problem/algorithm.hpp"

#include <vector>

#include "core/base/nearest.hpp"

namespace flashsim {

Result<Algorithm> algorithm_named(std::string_view name) {
  if (name == "flash") return Algorithm::flash2;
  std::vector<std::string> known;
  for (const AlgorithmFacts& facts : kAlgorithms) {
    if (facts.name == name) return facts.algorithm;
    known.emplace_back(facts.name);
  }
  known.emplace_back("flash");
  return unknown_name("algorithm", name, known);
}

}  // namespace flashsim
