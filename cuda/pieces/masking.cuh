// What a masked key is: the score that it gets, and the weight that it leaves. The CPU has the same
// (docs/architecture.md).
#pragma once

namespace flashsim {

/// The score of a masked key under Fault::finite_mask.
inline constexpr float kFiniteMask = -1e4f;

/// What a masked key weighs: −0, which is nothing to every sum and which no exponential gives. So a key whose
/// weight has become 0 can be told from one that must not be looked at.
inline constexpr float kNoWeight = -0.0f;

__device__ inline bool has_no_weight(float weight) { return __float_as_uint(weight) == 0x80000000u; }

}  // namespace flashsim
