// Errors and their places: nothing hides a wrong element.
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::kInfinity;
using test::kNaN;
using test::matrix;

Comparison compared(std::vector<double> result, std::vector<double> truth) {
  const auto n = static_cast<std::int64_t>(result.size());
  return compare(matrix(n, 1, std::move(result)), matrix(n, 1, std::move(truth)));
}

TEST_CASE("equal tensors differ by nothing, whatever they hold") {
  const Comparison same =
      compared({1, -2, kNaN, kInfinity, -kInfinity, 0.0}, {1, -2, kNaN, kInfinity, -kInfinity, -0.0});
  CHECK(same.max_abs.size == 0);
  CHECK(same.agrees_within(0));
}

TEST_CASE("the largest difference and its row are found") {
  const Comparison found = compared({1, 2, 3, 4}, {1.25, 2, 2, 4.5});
  CHECK(found.max_abs.size == 1);
  CHECK(found.max_abs.element.at.row == 2);
  CHECK(found.agrees_within(1));
  CHECK_FALSE(found.agrees_within(0.999));
}

TEST_CASE("infinity against anything else is infinitely wrong") {
  CHECK(compared({kInfinity}, {1}).max_abs.size == kInfinity);
  CHECK(compared({1}, {-kInfinity}).max_abs.size == kInfinity);
  CHECK(compared({kInfinity}, {-kInfinity}).max_abs.size == kInfinity);
  CHECK_FALSE(compared({kInfinity}, {1}).agrees_within(1e308));
  CHECK(compared({1, kInfinity, 9}, {1, 0, 0}).max_abs.element.at.row == 1);
}

TEST_CASE("NaN against a number is the worst error there is") {
  for (const double other : {0.0, kInfinity, -kInfinity}) {
    for (const auto& found :
         {compared({100, 0, kNaN, 7}, {0, 0, other, 7}), compared({100, 0, other, 7}, {0, 0, kNaN, 7})}) {
      CHECK(std::isnan(found.max_abs.size));
      CHECK(found.max_abs.element.at.row == 2);
      CHECK_FALSE(found.agrees_within(1e308));
      CHECK_FALSE(found.agrees_within(kInfinity));
    }
  }
  // Neither an infinite error nor a second NaN takes its place.
  CHECK(compared({1, kNaN, kInfinity, kNaN}, {1, 0, 0, 0}).max_abs.element.at.row == 1);
  CHECK(compared({kInfinity, kNaN}, {0, 0}).max_abs.element.at.row == 1);
}

TEST_CASE("the place is told by batch, head, row and column") {
  Tensor4<float> result(2, 3, 4, 5);
  Tensor4<double> truth(2, 3, 4, 5);
  result.matrix(1, 2)(3, 1) = 1;
  result.matrix(1, 0)(2, 4) = 3;
  result.matrix(0, 1)(0, 3) = -2;
  const Comparison found = compare(result, truth);
  CHECK(found.max_abs.size == 3);
  CHECK(found.max_abs.element.at.batch == 1);
  CHECK(found.max_abs.element.at.head == 0);
  CHECK(found.max_abs.element.at.row == 2);
  CHECK(found.max_abs.element.at.column == 4);
}

/// One row, as if rounded to `stored`.
Comparison compared_as(NumberType stored, const std::vector<double>& result, const std::vector<double>& truth,
                       double tolerance) {
  const auto n = static_cast<std::int64_t>(result.size());
  return compare(matrix(1, n, result), RowSample{.rows = {{0, 0, 0}}, .of = 1}, matrix(1, n, truth), stored,
                 tolerance);
}

TEST_CASE(
    "the relative error is largest where it is, and infinite where the truth is 0 and the result isn't") {
  const Comparison found = compared({100.5, 0.02, 3}, {100, 0.01, 3});
  CHECK(found.max_abs.element.at.row == 0);
  CHECK(found.max_rel.size == 1);
  CHECK(found.max_rel.element.at.row == 1);
  CHECK(compared({1e-300}, {0}).max_rel.size == kInfinity);
  CHECK(compared({0.0}, {-0.0}).max_rel.size == 0);
  CHECK(std::isnan(compared({kNaN, 5}, {1, 0}).max_rel.size));
}

TEST_CASE("units of the last place are those of the stored type at the truth") {
  CHECK(compared_as(NumberType::fp32, {1 + 0x1p-23}, {1}, 1).max_ulp.size == 1);
  CHECK(compared_as(NumberType::fp64, {1 + 0x1p-52}, {1}, 1).max_ulp.size == 1);
  CHECK(compared_as(NumberType::fp16, {1 + 0x1p-10}, {1}, 1).max_ulp.size == 1);
  CHECK(compared_as(NumberType::bf16, {1 + 0x1p-7}, {1}, 1).max_ulp.size == 1);
  // Just under a power of two they are half as large, and the truth needs no rounding of its own.
  CHECK(compared_as(NumberType::fp16, {2}, {2 - 0x1p-11}, 1).max_ulp.size == 0.5);
  // Below the least normal number, at 0 as well, they are the least subnormal.
  CHECK(compared_as(NumberType::fp16, {0x1p-24}, {0}, 1).max_ulp.size == 1);
  CHECK(compared_as(NumberType::fp16, {0x1p-20}, {0x1p-24}, 1).max_ulp.size == 15);
  CHECK(std::isnan(compared_as(NumberType::fp16, {kNaN}, {0}, 1).max_ulp.size));
  CHECK(compared_as(NumberType::fp16, {kInfinity}, {0}, 1).max_ulp.size == kInfinity);
}

TEST_CASE(
    "what overflows its stored type agrees where the truth does, or misses it by no more than the "
    "tolerance") {
  const auto fp16 = [](double got, double truth, double tolerance) {
    return compared_as(NumberType::fp16, {got}, {truth}, tolerance);
  };
  CHECK(fp16(kInfinity, 65520, 0).agrees());
  CHECK(fp16(kInfinity, 1e9, 0).max_abs.size == 0);
  CHECK(fp16(-kInfinity, -65520, 0).agrees());
  CHECK(fp16(kInfinity, 65510, 10).agrees());
  CHECK(fp16(kInfinity, 65510, 10).max_abs.size == 10);
  CHECK_FALSE(fp16(kInfinity, 65509, 10).agrees());
  CHECK(fp16(kInfinity, 65509, 10).max_abs.size == kInfinity);
  CHECK_FALSE(fp16(kInfinity, -65520, 10).agrees());
  CHECK(fp16(65504, 65530, 26).agrees());
  CHECK_FALSE(fp16(65504, 1e9, 26).agrees());
  CHECK(compared_as(NumberType::fp32, {kInfinity}, {1e39}, 0).agrees());
  CHECK_FALSE(compared_as(NumberType::fp64, {kInfinity}, {1e308}, 1).agrees());
}

TEST_CASE("wrong elements and rows are counted, and the first is kept in order") {
  Tensor4<double> result(2, 2, 3, 2);
  const Tensor4<double> truth(2, 2, 3, 2);
  result.matrix(1, 1)(2, 0) = 9;
  result.matrix(0, 1)(1, 1) = -1;
  result.matrix(0, 1)(1, 0) = 0.5;  // within the tolerance
  result.matrix(1, 0)(0, 0) = kNaN;
  result.matrix(1, 0)(0, 1) = kNaN;
  const Comparison found = compare(result, truth, 0.5);
  CHECK(found.rows == 12);
  CHECK(found.elements == 24);
  CHECK(found.wrong_elements == 4);
  CHECK(found.wrong_rows == 3);
  REQUIRE(found.first_wrong);
  CHECK(found.first_wrong->at.head == 1);
  CHECK(found.first_wrong->at.row == 1);
  CHECK(found.first_wrong->at.column == 1);
  CHECK(found.first_wrong->got == -1);
  CHECK(found.first_wrong->expected == 0);
  CHECK_FALSE(found.agrees());
  CHECK(compare(truth, truth, 0).agrees());
}

TEST_CASE("no tolerance lets an infinity or a NaN pass, and a tolerance that is NaN lets nothing pass") {
  CHECK_FALSE(compare(matrix(1, 1, {kInfinity}), matrix(1, 1, {1}), kInfinity).agrees());
  CHECK_FALSE(compare(matrix(1, 1, {kNaN}), matrix(1, 1, {1}), kInfinity).agrees());
  CHECK_FALSE(compare(matrix(1, 1, {1}), matrix(1, 1, {kNaN}), kInfinity).agrees());
  CHECK_FALSE(compare(matrix(1, 1, {1.5}), matrix(1, 1, {1}), kNaN).agrees());
}

TEST_CASE("of sampled rows those alone are compared, each with its own truth") {
  Tensor4<float> result(1, 2, 3, 1);
  result.data() = {0, 1, 2, 3, 4, 5};
  const RowSample sample{.rows = {{0, 0, 2}, {0, 1, 1}}, .of = 6};
  CHECK(compare(result, sample, matrix(2, 1, {2, 4}), NumberType::fp32, 0).agrees());
  const Comparison found = compare(result, sample, matrix(2, 1, {2, 5}), NumberType::fp32, 0);
  REQUIRE(found.first_wrong);
  CHECK(found.first_wrong->at.head == 1);
  CHECK(found.first_wrong->at.row == 1);
  CHECK(found.rows == 2);
}

}  // namespace
}  // namespace flashsim
