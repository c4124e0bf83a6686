#include "core/account/inputs.hpp"

#include <initializer_list>

namespace flashsim {
namespace {

std::vector<Alive> whole(std::initializer_list<Operand> operands, const Problem& problem) {
  std::vector<Alive> tensors;
  for (const Operand operand : operands) tensors.push_back({operand, "", whole_size(operand, problem)});
  return tensors;
}

}  // namespace

std::vector<Alive> saved_for_backward(const Problem& problem, const Method& method) {
  switch (method.algorithm) {
    case Algorithm::standard: return whole({Operand::P}, problem);
    case Algorithm::eager:
      return method.passes.dropout ? whole({Operand::P, Operand::P_dropped, Operand::Z}, problem)
                                   : whole({Operand::P}, problem);
    case Algorithm::flash1: return whole({Operand::O, Operand::l, Operand::m}, problem);
    case Algorithm::flash2: return whole({Operand::O, Operand::L}, problem);
    default: return {};
  }
}

std::vector<Alive> inputs_of(const Problem& problem, const Method& method) {
  std::vector<Alive> inputs = whole({Operand::Q, Operand::K, Operand::V}, problem);
  if (method.pass != Pass::forward) inputs.push_back({Operand::dO, "", whole_size(Operand::dO, problem)});
  if (method.pass == Pass::backward) {
    for (Alive& tensor : saved_for_backward(problem, method)) inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Bytes input_bytes(const Problem& problem, const Method& method) {
  return total_size(inputs_of(problem, method));
}

}  // namespace flashsim
