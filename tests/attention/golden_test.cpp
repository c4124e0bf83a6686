// Every algorithm, and our own truth, against what PyTorch computed in float64.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/true_gradients.hpp"
#include "core/attention/verification.hpp"
#include "core/base/file.hpp"
#include "core/base/npy.hpp"
#include "tests/attention/backward.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/golden_cases.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::golden_cases;
using test::GoldenCase;
using test::text_of;
using test::Way;
using test::ways;

double largest(const Tensor4<double>& tensor) {
  double size = 0;
  for (const double value : tensor.data()) size = std::max(size, std::fabs(value));
  return size;
}

/// The largest difference over the largest value.
template <class T>
double distance(const Tensor4<T>& got, const Tensor4<double>& expected) {
  if (got.data().size() != expected.data().size()) return test::kNaN;
  return compare(got, expected).max_abs.size / largest(expected);
}

std::vector<Way> golden_ways() { return ways({{1, 1}, {3, 5}, {16, 16}, {128, 128}, {200, 300}}); }

TEST_CASE("all golden cases are there, and every tensor has the shape of its problem") {
  REQUIRE(golden_cases().size() == 11);
  for (const GoldenCase& golden : golden_cases()) {
    INFO(golden.name);
    const Problem& p = golden.given.problem;
    CHECK_FALSE(p.validate());
    const auto has_shape = [](const Tensor4<double>& t, std::int64_t b, std::int64_t h, std::int64_t n,
                              std::int64_t d) {
      return t.batch() == b && t.heads() == h && t.rows() == n && t.columns() == d;
    };
    CHECK(has_shape(golden.given.inputs.q, p.batch, p.heads, p.seq, p.head_dim));
    CHECK(has_shape(golden.given.inputs.k, p.batch, p.kv_heads, p.kv_seq, p.head_dim));
    CHECK(has_shape(golden.given.inputs.v, p.batch, p.kv_heads, p.kv_seq, p.head_dim));
    CHECK(has_shape(golden.expected.o, p.batch, p.heads, p.seq, p.head_dim));
    CHECK(has_shape(golden.expected.lse, p.batch, p.heads, p.seq, 1));
  }
}

TEST_CASE("the truth is PyTorch's float64 result") {
  for (const GoldenCase& golden : golden_cases()) {
    INFO(golden.name);
    const Truth truth = truth_of(golden.given.problem, golden.given.inputs);
    CHECK(distance(truth.outputs.o, golden.expected.o) <= 1e-13);
    CHECK(distance(truth.outputs.lse, golden.expected.lse) <= 1e-13);
    CHECK(truth.magnitudes.value == largest(golden.given.inputs.v));
  }
}

TEST_CASE("the true gradients are PyTorch's float64 gradients") {
  for (const GoldenCase& golden : golden_cases()) {
    INFO(golden.name);
    const auto [dq, dk, dv] = true_gradients(golden.given.problem, golden.given.inputs, golden.d_o).gradients;
    CHECK(distance(dq, golden.gradients.dq) <= 1e-13);
    CHECK(distance(dk, golden.gradients.dk) <= 1e-13);
    CHECK(distance(dv, golden.gradients.dv) <= 1e-13);
  }
}

TEST_CASE("in float64 every algorithm gives PyTorch's result at every tiling") {
  for (const GoldenCase& golden : golden_cases()) {
    for (const Way& way : golden_ways()) {
      INFO(golden.name << ", " << text_of(way));
      const Outputs<double> got = test::attend_in<double>(way, golden.given);
      CHECK(distance(got.o, golden.expected.o) <= 1e-12);
      CHECK(distance(got.lse, golden.expected.lse) <= 1e-12);
    }
  }
}

TEST_CASE("in float32 every algorithm is within rounding of the truth at every tiling") {
  for (const GoldenCase& golden : golden_cases()) {
    const Inputs<float> rounded = converted<float>(golden.given.inputs);
    Problem problem = golden.given.problem;
    problem.storage = NumberType::fp32;
    const Truth truth = truth_of(problem, rounded);
    INFO(golden.name);
    for (const Way& way : golden_ways()) {
      INFO(text_of(way));
      const Tolerance tolerance = tolerance_of<float>(problem, way.method(), truth.magnitudes, false);
      // The tolerance is one that a wrong result would leave.
      CHECK(tolerance.output.value() < 0.01 * largest(truth.outputs.o));
      CHECK(tolerance.lse.value() < 0.01 * largest(truth.outputs.lse));
      const Outputs<float> got = attend<float>(problem, way.method(), {}, rounded);
      CHECK(compare(got.o, truth.outputs.o).agrees_within(tolerance.output.value()));
      CHECK(compare(got.lse, truth.outputs.lse).agrees_within(tolerance.lse.value()));
      // It is float32 and no better: what rounds nothing would be no test of rounding.
      CHECK(compare(got.o, truth.outputs.o).max_abs.size > 0);
    }
  }
}

/// More tilings than one of the gradients' kernels has tiles.
std::vector<Way> golden_backward_ways() {
  return test::backward_ways({{1, 1}, {3, 5}, {16, 16}, {128, 128}, {200, 300}});
}

TEST_CASE("in float64 standard and flash2 give PyTorch's gradients at every tiling") {
  for (const GoldenCase& golden : golden_cases()) {
    const auto given = test::in_type<double>(golden.given, golden.d_o);
    for (const Way& way : golden_backward_ways()) {
      INFO(golden.name << ", " << text_of(way));
      const auto [dq, dk, dv] = gradients_of(way, given, {.threads = 2});
      CHECK(distance(dq, golden.gradients.dq) <= 1e-12);
      CHECK(distance(dk, golden.gradients.dk) <= 1e-12);
      CHECK(distance(dv, golden.gradients.dv) <= 1e-12);
    }
  }
}

TEST_CASE("in float32 the gradients are within rounding of the truth at every tiling") {
  for (const GoldenCase& golden : golden_cases()) {
    const auto given = test::in_type<float>(golden.given, golden.d_o);
    for (const Way& way : golden_backward_ways()) {
      INFO(golden.name << ", " << text_of(way));
      const Gradients<float> got = gradients_of(way, given);
      const GradientVerification found =
          verify_gradients(way.algorithm, given.problem, way.tiling, {}, given.inputs, given.d_o, got);
      CHECK(found.agrees());
      CHECK(found.queries.whole());
      CHECK(found.keys.whole());
      // It is float32 and no better.
      CHECK(found.dq.max_abs.size > 0);
      CHECK(found.dv.max_abs.size > 0);
    }
  }
}

TEST_CASE("a tensor is written as NumPy writes it, byte for byte") {
  const test::TemporaryFolder folder;
  for (const GoldenCase& golden : golden_cases()) {
    const auto check = [&](const std::string& name, const Tensor4<double>& tensor, int dimensions,
                           NpyRow row) {
      INFO(golden.name << ", " << name);
      const std::string path = folder / name;
      REQUIRE_FALSE(write_npy(path, tensor, dimensions, row));
      const bool same =
          read_file(path).value() == read_file(test::kGoldenFolder + golden.name + "/" + name).value();
      CHECK(same);
    };
    check("q.npy", golden.given.inputs.q, 4, NpyRow::vector);
    check("k.npy", golden.given.inputs.k, 4, NpyRow::vector);
    check("v.npy", golden.given.inputs.v, 4, NpyRow::vector);
    check("o.npy", golden.expected.o, 4, NpyRow::vector);
    check("lse.npy", golden.expected.lse, 3, NpyRow::number);
  }
}

}  // namespace
}  // namespace flashsim
