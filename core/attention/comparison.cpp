#include "core/attention/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/rounding.hpp"

namespace flashsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The distance of two neighbours of `value` in a format.
double unit_in_last_place(const StorageFormat& format, double value) {
  int exponent = format.least_exponent;
  if (value != 0) std::frexp(std::min(std::fabs(value), format.largest), &exponent);
  return std::ldexp(1.0, std::max(exponent, format.least_exponent + 1) - format.digits);
}

class Judge {
 public:
  Judge(NumberType stored, double tolerance)
      : format_(format_of(stored)),
        tolerance_(tolerance),
        overflow_(format_.largest + unit_in_last_place(format_, format_.largest) / 2) {}

  [[nodiscard]] double error(double got, double truth) const {
    if (std::isnan(got) || std::isnan(truth)) return std::isnan(got) && std::isnan(truth) ? 0 : kNaN;
    if (got == truth) return 0;
    if (std::isinf(got) && std::isfinite(truth) && std::signbit(got) == std::signbit(truth)) {
      const double short_of = std::max(0.0, overflow_ - std::fabs(truth));
      if (short_of > tolerance_) return kInfinity;
      return short_of;
    }
    return std::fabs(got - truth);
  }
  /// What the error is of the truth.
  [[nodiscard]] static double relative(double error, double truth) {
    return error == 0 || !std::isfinite(error) ? error : error / std::fabs(truth);
  }
  [[nodiscard]] double in_ulp(double error, double truth) const {
    return error == 0 || !std::isfinite(error) ? error : error / unit_in_last_place(format_, truth);
  }
  [[nodiscard]] bool is_wrong(double error) const { return !(error <= tolerance_) || std::isinf(error); }

 private:
  StorageFormat format_;
  double tolerance_;
  double overflow_;  ///< the least number that rounds to infinity
};

/// NaN is worse than infinity, which is worse than any number.
bool worse(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

void note(LargestError& largest, double size, const Element& element) {
  if (worse(size, largest.size)) largest = {size, element};
}

}  // namespace

template <class T>
Comparison compare(const Tensor4<T>& result, const RowSample& sample, const Tensor4<double>& truth,
                   NumberType stored, double tolerance) {
  const Judge judge(stored, tolerance);
  const std::int64_t columns = truth.columns();
  Comparison comparison{.tolerance = tolerance};
  comparison.rows = static_cast<std::int64_t>(sample.rows.size());
  comparison.elements = comparison.rows * columns;
  const double* expected = truth.data().data();
  for (std::size_t k = 0; k < sample.rows.size(); ++k) {
    const RowPlace& place = sample.rows[k];
    const T* row = result.matrix(place.batch, place.head).row(place.row);
    bool row_is_wrong = false;
    for (std::int64_t x = 0; x < columns; ++x, ++expected) {
      const auto got = static_cast<double>(row[x]);
      const double error = judge.error(got, *expected);
      if (error == 0) continue;
      const Element element{{place.batch, place.head, place.row, x}, got, *expected};
      note(comparison.max_abs, error, element);
      note(comparison.max_rel, Judge::relative(error, *expected), element);
      note(comparison.max_ulp, judge.in_ulp(error, *expected), element);
      if (!judge.is_wrong(error)) continue;
      if (!comparison.first_wrong) comparison.first_wrong = element;
      ++comparison.wrong_elements;
      row_is_wrong = true;
    }
    if (row_is_wrong) comparison.wrong.push_back(static_cast<std::int64_t>(k));
  }
  comparison.wrong_rows = static_cast<std::int64_t>(comparison.wrong.size());
  return comparison;
}

template <class T>
Comparison compare(const Tensor4<T>& result, const Tensor4<double>& truth, double tolerance) {
  RowSample all{.of = truth.batch() * truth.heads() * truth.rows()};
  for (std::int64_t b = 0; b < truth.batch(); ++b) {
    for (std::int64_t h = 0; h < truth.heads(); ++h) {
      for (std::int64_t r = 0; r < truth.rows(); ++r) all.rows.push_back({b, h, r});
    }
  }
  return compare(result, all, truth, sizeof(T) == sizeof(float) ? NumberType::fp32 : NumberType::fp64,
                 tolerance);
}

template Comparison compare(const Tensor4<float>&, const RowSample&, const Tensor4<double>&, NumberType,
                            double);
template Comparison compare(const Tensor4<double>&, const RowSample&, const Tensor4<double>&, NumberType,
                            double);
template Comparison compare(const Tensor4<float>&, const Tensor4<double>&, double);
template Comparison compare(const Tensor4<double>&, const Tensor4<double>&, double);

}  // namespace flashsim
