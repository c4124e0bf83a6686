// The walks of softmax by itself: the ordered steps of each way on one row. A row that fits the chip is
// loaded once and stays; one that doesn't comes again, piece by piece, for every pass.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem/softmax.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

struct SoftmaxStep {
  enum class Kind {
    load,     ///< a piece of x, or of y where a second kernel reads it, comes onto the chip
    work,     ///< `pass` goes over the piece
    store,    ///< a piece of y goes to HBM
    results,  ///< the k results of the row go to HBM
  } kind{};
  SoftmaxPass pass{};  ///< of work
  Range columns;       ///< the piece
};

class SoftmaxListener {
 public:
  virtual ~SoftmaxListener() = default;
  virtual void step(const SoftmaxStep& step) = 0;
  virtual void kernel(std::string_view name) { (void)name; }
};

/// Walks one row. All rows walk alike.
void walk_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip,
                  SoftmaxListener& listener);

}  // namespace flashsim
