// All rungs, by their kernel.
#pragma once

#include "cuda/ladder/rung.hpp"

namespace flashsim {

const Rung& rung_of(Kernel kernel);

}  // namespace flashsim
