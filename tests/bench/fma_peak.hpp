// What the machine could do at most: the rate of fused multiply-adds on registers alone, by which the rate
// of attention is judged.
#pragma once

namespace flashsim::bench {

/// Floating-point operations a second, two to a multiply-add, of `threads` threads at once in T = float or
/// double: the best of a few runs of some 50 ms.
template <class T>
double fma_peak(int threads);

/// The instruction set that the loop ran on: "AVX3", "AVX2", "NEON" …
const char* fma_target();

}  // namespace flashsim::bench
