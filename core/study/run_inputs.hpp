// The tensors of a run, read or drawn straight into the type that computes with them.
#pragma once

#include <functional>

#include "core/attention/tensors.hpp"
#include "core/base/result.hpp"
#include "core/study/run_plan.hpp"

namespace flashsim {

template <class T>
struct RunInputs {
  Inputs<T> qkv;
  Tensor4<T> d_o;  ///< [B, H, N, d] for a backward pass, else empty
};

/// Reads and draws what `plan` says, and rounds it to the storage type. `progress` is told how much is done,
/// from 0 to 1. Errors: a file that can't be read, or that has changed since it was planned with.
template <class T>
Result<RunInputs<T>> run_inputs(const RunPlan& plan, const std::function<void(double)>& progress);

}  // namespace flashsim
