// The true gradients: what finite differences say of them, their rows one by one, their conventions.
#include "core/attention/true_gradients.hpp"

#include "core/attention/truth.hpp"
#include "core/problem/mask.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::drawn_inputs;
using test::kInfinity;
using test::kNaN;
using test::RandomNumbers;

Tensor4<double> drawn_gradient(const Problem& p, RandomNumbers& random) {
  Tensor4<double> d_o(p.batch, p.heads, p.seq, p.head_dim);
  random.fill(d_o, 1);
  return d_o;
}

/// Σ dO ∘ O.
double loss(const Problem& problem, const Inputs<double>& inputs, const Tensor4<double>& d_o) {
  const Truth truth = truth_of(problem, inputs);
  double sum = 0;
  for (std::size_t i = 0; i < d_o.data().size(); ++i) sum += d_o.data()[i] * truth.outputs.o.data()[i];
  return sum;
}

TEST_CASE("the gradients are the slopes of the loss") {
  test::RandomShapes shapes(31);
  RandomNumbers random(32);
  for (int i = 0; i < 12; ++i) {
    const Problem problem = shapes.next(9).problem;
    Inputs<double> inputs = drawn_inputs(problem, random, 1);
    const Tensor4<double> d_o = drawn_gradient(problem, random);
    const Gradients<double> gradients = true_gradients(problem, inputs, d_o).gradients;
    const auto slopes_match = [&](Tensor4<double>& tensor, const Tensor4<double>& gradient) {
      const auto elements = static_cast<std::int64_t>(tensor.data().size());
      for (int k = 0; k < 8; ++k) {
        double& element = tensor.data()[static_cast<std::size_t>(random.from_to(0, elements - 1))];
        const auto at = static_cast<std::size_t>(&element - tensor.data().data());
        const double before = element;
        constexpr double kStep = 1e-5;
        element = before + kStep;
        const double above = loss(problem, inputs, d_o);
        element = before - kStep;
        const double below = loss(problem, inputs, d_o);
        element = before;
        CHECK(std::fabs((above - below) / (2 * kStep) - gradient.data()[at]) < 1e-7);
      }
    };
    INFO(shape_text(problem));
    slopes_match(inputs.q, gradients.dq);
    slopes_match(inputs.k, gradients.dk);
    slopes_match(inputs.v, gradients.dv);
  }
}

/// The rows of `some` are those of `whole`, bit for bit.
bool are_rows_of(const Tensor4<double>& some, const RowSample& sample, const Tensor4<double>& whole) {
  const auto d = static_cast<std::size_t>(whole.columns());
  for (std::size_t k = 0; k < sample.rows.size(); ++k) {
    const auto& [b, h, row] = sample.rows[k];
    if (!test::same_bits(some.data().data() + k * d, whole.matrix(b, h).row(row), d)) return false;
  }
  return true;
}

TEST_CASE("sampled gradients have the bits of the whole ones, and threads change none") {
  test::RandomShapes shapes(41);
  RandomNumbers random(42);
  int sampled = 0;
  for (int i = 0; i < 40; ++i) {
    const Problem problem = shapes.next(24).problem;
    const Inputs<float> inputs = converted<float>(drawn_inputs(problem, random, 2));
    const Tensor4<float> d_o = converted_tensor<float>(drawn_gradient(problem, random));
    const TrueGradients whole = true_gradients(problem, inputs, d_o);
    for (const int threads : {2, 7}) {
      const TrueGradients again = true_gradients(problem, inputs, d_o, threads);
      CHECK(test::same_bits(again.gradients.dq, whole.gradients.dq));
      CHECK(test::same_bits(again.gradients.dk, whole.gradients.dk));
      CHECK(test::same_bits(again.gradients.dv, whole.gradients.dv));
      CHECK(again.magnitudes.dk_terms == whole.magnitudes.dk_terms);
      CHECK(again.magnitudes.summed_do_o == whole.magnitudes.summed_do_o);
    }
    const RowSample queries = sample_query_rows(problem, {4, 4}, 1);
    const RowSample keys = sample_key_rows(problem, 16.0 * 24 * 40);
    const TrueGradients some = true_gradients(problem, inputs, d_o, queries, keys, 2);
    CHECK(are_rows_of(some.gradients.dq, queries, whole.gradients.dq));
    CHECK(are_rows_of(some.gradients.dk, keys, whole.gradients.dk));
    CHECK(are_rows_of(some.gradients.dv, keys, whole.gradients.dv));
    sampled += !keys.whole() && !keys.rows.empty() ? 1 : 0;
  }
  CHECK(sampled > 5);
}

TEST_CASE("an empty row and a key that nobody sees have gradients of 0, whatever stands behind the mask") {
  // Aligned at the top left, two queries see the first two of four keys.
  const Problem problem{.batch = 1,
                        .heads = 1,
                        .kv_heads = 1,
                        .seq = 2,
                        .kv_seq = 4,
                        .head_dim = 1,
                        .causal = true,
                        .alignment = CausalAlignment::top_left,
                        .scale = 1};
  const Inputs<double> inputs{.q = test::matrix(2, 1, {1, 2}),
                              .k = test::matrix(4, 1, {1, 3, kNaN, kInfinity}),
                              .v = test::matrix(4, 1, {1, 2, kNaN, kInfinity})};
  const Gradients<double> seen = true_gradients(problem, inputs, test::matrix(2, 1, {1, 1})).gradients;
  CHECK(seen.dk.data()[2] == 0);
  CHECK(seen.dv.data()[3] == 0);
  CHECK(std::isfinite(seen.dq.data()[0]));
  CHECK(seen.dq.data()[0] == 0);  // one key: P is 1, whatever the score
  CHECK(std::isfinite(seen.dq.data()[1]));

  Problem empty = problem;
  empty.alignment = CausalAlignment::bottom_right;
  empty.seq = 4;
  empty.kv_seq = 1;
  const Inputs<double> one{.q = test::matrix(4, 1, {kNaN, kNaN, kNaN, 1}),
                           .k = test::matrix(1, 1, {1}),
                           .v = test::matrix(1, 1, {5})};
  const Gradients<double> none = true_gradients(empty, one, test::matrix(4, 1, {kNaN, 1, 1, 3})).gradients;
  CHECK(none.dq.data() == std::vector<double>{0, 0, 0, 0});
  CHECK(none.dv.data()[0] == 3);
}

TEST_CASE("a NaN score makes the gradients of its query and of the keys that it sees NaN, and no others") {
  const Problem problem{.batch = 1,
                        .heads = 1,
                        .kv_heads = 1,
                        .seq = 3,
                        .kv_seq = 3,
                        .head_dim = 1,
                        .causal = true,
                        .scale = 1};
  const Inputs<double> inputs{.q = test::matrix(3, 1, {1, kNaN, 1}),
                              .k = test::matrix(3, 1, {1, 2, 3}),
                              .v = test::matrix(3, 1, {1, 2, 3})};
  const auto [dq, dk, dv] = true_gradients(problem, inputs, test::matrix(3, 1, {1, 1, 1})).gradients;
  CHECK(std::isfinite(dq.data()[0]));
  CHECK(std::isnan(dq.data()[1]));
  CHECK(std::isfinite(dq.data()[2]));
  CHECK(std::isnan(dv.data()[0]));
  CHECK(std::isnan(dk.data()[1]));
  CHECK(std::isfinite(dv.data()[2]));
}

}  // namespace
}  // namespace flashsim
