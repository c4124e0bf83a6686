// What lies in memory before a walk begins: the inputs, dO backward, and what a forward pass saved.
#pragma once

#include <vector>

#include "core/account/prediction.hpp"

namespace flashsim {

/// What a forward pass of `method` keeps for the gradients beside its inputs: P, or what P is computed from
/// again. Empty for an algorithm without a backward pass.
std::vector<Alive> saved_for_backward(const Problem& problem, const Method& method);

/// Q, K and V; dO as well where the gradients are made; what forward saved where they alone are.
std::vector<Alive> inputs_of(const Problem& problem, const Method& method);

/// Bytes of those together.
Bytes input_bytes(const Problem& problem, const Method& method);

}  // namespace flashsim
