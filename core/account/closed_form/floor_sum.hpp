// Σ ⌊(a·i + b) / m⌋ over i = 0 … n−1, in O(log) steps by the Euclidean algorithm, so that a closed
// form over ragged causal tiles costs the same at N = 2⁴⁰ as at N = 8.
#pragma once

#include "core/base/wide.hpp"

namespace flashsim {

/// n, a, b ≥ 0 and m ≥ 1. Exact while the sum itself fits 127 bits.
constexpr Wide floor_sum(Wide n, Wide m, Wide a, Wide b) {
  Wide sum = 0;
  while (n > 0) {
    // Whole multiples of m in slope and offset add an arithmetic series.
    sum += (n - 1) * n / 2 * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const Wide top = a * n + b;
    if (top < m) break;
    // What is left counts lattice points under a line; seen from the other axis it is the same problem.
    n = top / m;
    b = top % m;
    const Wide old_m = m;
    m = a;
    a = old_m;
  }
  return sum;
}

}  // namespace flashsim
