// The memory of a run, told before any of it is taken.
#pragma once

#include "core/base/result.hpp"
#include "core/base/units.hpp"
#include "core/study/run_plan.hpp"

namespace flashsim {

/// What the tensors, the score matrices that an algorithm keeps, and each thread's tiles take, together.
/// May be the overflowed count.
Bytes memory_of(const RunPlan& plan);

/// The memory of this machine.
Bytes physical_memory();

/// Errors: the plan needs more than `available`.
Outcome check_memory(const RunPlan& plan, Bytes available);

/// The error of a run that could not get the memory it needs.
Error not_enough_memory(const RunPlan& plan);

}  // namespace flashsim
