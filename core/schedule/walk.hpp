// A walk is the ordered steps of one algorithm on one head. It computes nothing: listeners follow it,
// and so the arithmetic, the byte counts and the replay come from the same steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

class Listener {
 public:
  virtual ~Listener() = default;
  /// One operation on one tile.
  virtual void step(const Step& step) = 0;
  /// A kernel starts, with so many thread blocks for this head.
  virtual void kernel(std::string_view name, std::int64_t blocks) {
    (void)name;
    (void)blocks;
  }
  /// Memory for a whole tensor is taken, or given back.
  virtual void allocate(Operand operand) { (void)operand; }
  virtual void release(Operand operand) { (void)operand; }
};

/// Walks one head of `algorithm` forward. All heads of a problem walk alike.
void walk(Algorithm algorithm, const Problem& problem, Tiling tiling, Listener& listener);

// One file each; `walk` calls the one that is named.
void walk_standard(const Problem& problem, Tiling tiling, Listener& listener);
void walk_eager(const Problem& problem, Tiling tiling, Listener& listener);
void walk_flash1(const Problem& problem, Tiling tiling, Listener& listener);
void walk_flash2(const Problem& problem, Tiling tiling, Listener& listener);

}  // namespace flashsim
