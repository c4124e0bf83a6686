// Sums in float64 that keep the rounding error of every addition and add it at the end (Neumaier 1974).
// The error of an addition is found without a branch (Knuth's two-sum), so that loops over many sums are
// vector code. Once a sum isn't finite its error has no meaning and is left out.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flashsim {

/// sum ← sum + value, and what that lost goes to `lost`.
inline void add_compensated(double& sum, double& lost, double value) {
  const double before = sum;
  const double after = before + value;
  const double added = after - before;
  lost += (before - (after - added)) + (value - added);
  sum = after;
}

class CompensatedSum {
 public:
  void add(double value) { add_compensated(sum_, lost_, value); }
  [[nodiscard]] double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

/// d sums side by side.
class CompensatedSums {
 public:
  explicit CompensatedSums(std::int64_t d) : sum_(static_cast<std::size_t>(d)), lost_(sum_.size()) {}

  void clear() {
    sum_.assign(sum_.size(), 0);
    lost_.assign(lost_.size(), 0);
  }
  /// Adds factor · row[x] to sum x.
  template <class T>
  void add(double factor, const T* row) {
    double* __restrict sum = sum_.data();
    double* __restrict lost = lost_.data();
    const std::size_t d = sum_.size();
    for (std::size_t x = 0; x < d; ++x) {
      const double value = factor * static_cast<double>(row[x]);
      const double before = sum[x];
      const double after = before + value;
      const double added = after - before;
      lost[x] += (before - (after - added)) + (value - added);
      sum[x] = after;
    }
  }
  [[nodiscard]] std::size_t size() const { return sum_.size(); }
  [[nodiscard]] double value(std::size_t x) const {
    return std::isfinite(sum_[x]) ? sum_[x] + lost_[x] : sum_[x];
  }

 private:
  std::vector<double> sum_;
  std::vector<double> lost_;
};

/// d plain sums of absolute values, for magnitudes.
class SumsOfSizes {
 public:
  explicit SumsOfSizes(std::int64_t d) : sum_(static_cast<std::size_t>(d)) {}
  void clear() { sum_.assign(sum_.size(), 0); }
  /// Adds |factor · row[x]| to sum x.
  template <class T>
  void add(double factor, const T* row) {
    double* __restrict sum = sum_.data();
    const std::size_t d = sum_.size();
    for (std::size_t x = 0; x < d; ++x) sum[x] += std::fabs(factor * static_cast<double>(row[x]));
  }
  [[nodiscard]] const std::vector<double>& values() const { return sum_; }

 private:
  std::vector<double> sum_;
};

/// A product of two rows.
struct DotProduct {
  double value = 0;  ///< Σ a_x b_x
  double size = 0;   ///< Σ |a_x b_x|
};

/// Both sums in four lanes, and those added in their order.
template <class T>
DotProduct dot_product(const T* a, const T* b, std::int64_t d) {
  constexpr std::int64_t kLanes = 4;
  std::array<double, kLanes> sum{};
  std::array<double, kLanes> lost{};
  std::array<double, kLanes> size{};
  const auto take = [&](std::size_t lane, std::int64_t x) {
    const double product = static_cast<double>(a[x]) * static_cast<double>(b[x]);
    add_compensated(sum[lane], lost[lane], product);
    size[lane] += std::fabs(product);
  };
  std::int64_t x = 0;
  for (; x + kLanes <= d; x += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) take(static_cast<std::size_t>(lane), x + lane);
  }
  for (std::size_t lane = 0; x < d; ++x, ++lane) take(lane, x);
  double total = 0;
  double total_lost = 0;
  for (const double each : sum) add_compensated(total, total_lost, each);
  const double value =
      std::isfinite(total) ? total + (total_lost + ((lost[0] + lost[1]) + (lost[2] + lost[3]))) : total;
  return {value, (size[0] + size[1]) + (size[2] + size[3])};
}

}  // namespace flashsim
