// What two tallies add up to where one follows the other: bytes, work and steps. Kernels and peaks are no
// such sums, and are left to who knows how the two stand to each other.
#pragma once

#include "core/account/tally.hpp"

namespace flashsim {

/// Adds the flows, the work and the steps of `more`.
void add_flows_and_work(Tally& sum, const Tally& more);

}  // namespace flashsim
