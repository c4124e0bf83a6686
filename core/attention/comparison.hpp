// A result held against the truth: the largest errors, where they are, and how many elements are wrong.
//
// NaN against a number is the worst error there is, infinity against a number or another infinity is the
// next, and no later error hides an earlier one as bad. Two NaNs agree, and so do two equal infinities.
// Errors are measured from the truth itself and not from its rounding, so a result that was rounded once
// is up to half a unit of its last place off.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/attention/row_sample.hpp"
#include "core/base/number_types.hpp"
#include "core/base/tensor.hpp"

namespace flashsim {

/// The place of an element of a tensor [B, H, N, d].
struct Place {
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

/// One element of a result.
struct Element {
  Place at;
  double got = 0;
  double expected = 0;  ///< the truth, in float64
};

/// The largest error of a kind, and the first element that has it.
struct LargestError {
  double size = 0;
  Element element;
};

struct Comparison {
  LargestError max_abs;  ///< |got − truth|
  LargestError max_rel;  ///< |got − truth| / |truth|; infinite where the truth is 0 and the result isn't
  LargestError max_ulp;  ///< |got − truth| in units of the last place that the stored type has at the truth
  double tolerance = 0;  ///< what an element may be off by
  std::int64_t elements = 0, wrong_elements = 0;
  std::int64_t rows = 0, wrong_rows = 0;
  std::vector<std::int64_t> wrong;     ///< the wrong rows: their places in the sample, ascending
  std::optional<Element> first_wrong;  ///< in order of batch, head, row and column

  [[nodiscard]] bool agrees() const { return wrong_elements == 0; }
  [[nodiscard]] bool agrees_within(double most) const { return max_abs.size <= most; }
};

/// Compares the rows `sample` of `result` [B, H, N, d] with `truth`, whose row number k, counted through the
/// tensor, is the truth of sample.rows[k]. `stored` is the type that the elements of `result` were rounded
/// to. An infinity where the truth, moved by the tolerance, rounds to that infinity is off by how far the
/// truth is from where rounding overflows: by 0 where it is beyond.
template <class T>
Comparison compare(const Tensor4<T>& result, const RowSample& sample, const Tensor4<double>& truth,
                   NumberType stored, double tolerance);

/// Compares whole tensors of one shape, stored in T.
template <class T>
Comparison compare(const Tensor4<T>& result, const Tensor4<double>& truth, double tolerance = 0);

}  // namespace flashsim
