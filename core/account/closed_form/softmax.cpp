// Softmax by itself: x is read once a pass where a row doesn't fit the chip, and once where it does; y is
// written once, or never where the k largest are found on the way; and a kernel of its own for them reads y.
#include "core/account/softmax.hpp"

namespace flashsim {
namespace {

/// Of one way: its passes over x, the exponentials of an element, and whether y is written.
struct Shape {
  std::int64_t passes = 0;
  std::int64_t exponentials = 0;
  bool whole = true;  ///< y is written
};

Shape shape_of(SoftmaxWay way) {
  switch (way) {
    case SoftmaxWay::naive: return {.passes = 2, .exponentials = 2};
    case SoftmaxWay::safe:
    case SoftmaxWay::safe_top_k: return {.passes = 3, .exponentials = 2};
    case SoftmaxWay::online:
    case SoftmaxWay::online_top_k: return {.passes = 2, .exponentials = 3};
    case SoftmaxWay::fused_top_k: return {.passes = 1, .exponentials = 2, .whole = false};
  }
  return {};
}

}  // namespace

SoftmaxPrediction predict_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip) {
  const Shape shape = shape_of(way);
  const bool selects = facts_of(way).selects;
  const std::int64_t again = selects && shape.whole ? 1 : 0;  // the k largest of y, in a kernel of its own
  const std::int64_t loads = chip.fits() ? 1 : shape.passes;
  const std::int64_t stores = shape.whole ? 1 : 0;
  const Formula rows("R", problem.rows);
  const Formula columns("V", problem.columns);
  const Formula element("e", size_of(problem.storage));
  const Formula tensor = rows * columns * element;
  const Formula results =
      rows * Formula("k", problem.top_k.value_or(0)) * (element + Formula("i", problem.index_size()));

  SoftmaxPrediction prediction;
  prediction.read = Formula(loads + again) * tensor;
  prediction.written = !selects ? tensor : shape.whole ? tensor + results : results;
  SoftmaxTally& tally = prediction.tally;
  tally.input.read = Bytes(tensor.value() * loads);
  tally.output = {.read = Bytes(tensor.value() * again), .written = Bytes(tensor.value() * stores)};
  if (selects) tally.results.written = Bytes(results.value());
  tally.exponentials = Count(problem.rows) * problem.columns * shape.exponentials;
  if (selects && !shape.whole) tally.exponentials += Count(problem.rows) * problem.top_k.value_or(0);
  tally.passes = shape.passes + again;
  tally.kernels = 1 + again;
  // Every pass works on every piece; pieces are loaded and stored as often as they cross.
  const Count pieces = (problem.columns - 1) / chip.columns + 1;
  tally.steps = pieces * (loads + shape.passes + stores + 2 * again) + (selects ? 1 : 0);
  return prediction;
}

}  // namespace flashsim
