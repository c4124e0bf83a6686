// Results verified: right ones agree, and one planted wrong element is found wherever it is.
#include "core/attention/verification.hpp"

#include "core/attention/attend.hpp"
#include "core/attention/true_gradients.hpp"
#include "core/attention/truth.hpp"
#include "tests/attention/plain_attention.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::kNaN;
using test::RandomNumbers;

const Problem kProblem{.batch = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .seq = 33,
                       .kv_seq = 37,
                       .head_dim = 6,
                       .causal = true,
                       .storage = NumberType::fp32};
const Tiling kTiling{8, 8};

Inputs<float> inputs_of(const Problem& problem) {
  RandomNumbers random(11);
  return converted<float>(drawn_inputs(problem, random, 2));
}

Verification verified(const Problem& problem, const Inputs<float>& inputs, const Outputs<float>& outputs,
                      const VerificationBudget& budget = {}) {
  return verify(Algorithm::flash2, problem, kTiling, {}, inputs, outputs, budget, 2);
}

TEST_CASE("a right result agrees, all of it or a sample") {
  const Inputs<float> inputs = inputs_of(kProblem);
  const Outputs<float> outputs = attend<float>(Algorithm::flash2, kProblem, kTiling, {}, inputs);
  const Verification all = verified(kProblem, inputs, outputs);
  CHECK(all.agrees());
  CHECK_FALSE(all.says_nothing());
  CHECK(all.verdict() == Verdict::right);
  CHECK(all.sample.whole());
  CHECK(all.output.rows == 2 * 4 * 33);
  CHECK(all.output.elements == 2 * 4 * 33 * 6);
  CHECK(all.output.max_abs.size > 0);
  CHECK(all.output.max_abs.size <= all.tolerance.output.value());
  CHECK_FALSE(all.first_wrong_row());

  const Verification some = verified(kProblem, inputs, outputs, {.products = 20000});
  CHECK(some.agrees());
  CHECK_FALSE(some.sample.whole());
  CHECK(some.lse.rows == static_cast<std::int64_t>(some.sample.rows.size()));
  CHECK(some.output.max_abs.size <= all.output.max_abs.size);
}

TEST_CASE("one element just over the tolerance is found, whichever it is") {
  const Inputs<float> inputs = inputs_of(kProblem);
  const Outputs<float> right = attend<float>(Algorithm::flash2, kProblem, kTiling, {}, inputs);
  const double most = verified(kProblem, inputs, right).tolerance.output.value();
  const Tensor4<double> truth = truth_of(kProblem, inputs).outputs.o;
  RandomNumbers random(12);
  for (int i = 0; i < 40; ++i) {
    Outputs<float> planted = right;
    const Place at{random.from_to(0, 1), random.from_to(0, 3), random.from_to(0, 32), random.from_to(0, 5)};
    float& element = planted.o.matrix(at.batch, at.head)(at.row, at.column);
    const double just_over = i % 2 == 0 ? 1.01 * most : -1.01 * most;
    element = static_cast<float>(truth.matrix(at.batch, at.head)(at.row, at.column) + just_over);
    const Verification found = verified(kProblem, inputs, planted);
    CHECK_FALSE(found.agrees());
    CHECK(found.verdict() == Verdict::wrong);
    CHECK(found.output.wrong_elements == 1);
    CHECK(found.output.wrong_rows == 1);
    CHECK(found.lse.agrees());
    CHECK(found.first_wrong_row() == RowPlace{at.batch, at.head, at.row});
    CHECK(found.output.first_wrong->at.column == at.column);
    CHECK(found.output.first_wrong->got == static_cast<double>(element));
  }
}

TEST_CASE("a NaN, a wrong L alone and a row of zeros are found") {
  const Inputs<float> inputs = inputs_of(kProblem);
  const Outputs<float> right = attend<float>(Algorithm::flash2, kProblem, kTiling, {}, inputs);
  Outputs<float> planted = right;
  planted.o.matrix(1, 3)(32, 5) = static_cast<float>(kNaN);
  CHECK(verified(kProblem, inputs, planted).first_wrong_row() == RowPlace{1, 3, 32});
  planted = right;
  planted.lse.matrix(0, 2)(7, 0) += 0.01f;
  const Verification lse = verified(kProblem, inputs, planted);
  CHECK(lse.output.agrees());
  CHECK(lse.first_wrong_row() == RowPlace{0, 2, 7});
  planted = right;
  std::fill_n(planted.o.matrix(0, 0).row(0), 6, 0.0f);
  CHECK(verified(kProblem, inputs, planted).output.wrong_elements == 6);
}

TEST_CASE("what was broken on purpose is told from what is wrong") {
  const Inputs<float> inputs = inputs_of(kProblem);
  const Switches switches{.rescale = false};
  const Outputs<float> broken = attend<float>(Algorithm::flash2, kProblem, kTiling, switches, inputs);
  const Verification found = verify(Algorithm::flash2, kProblem, kTiling, switches, inputs, broken);
  CHECK(found.verdict() == Verdict::broken);
  CHECK(found.output.wrong_rows > 0);
}

TEST_CASE("right gradients agree and a planted error in each is found") {
  const Inputs<float> inputs = inputs_of(kProblem);
  RandomNumbers random(13);
  const Tensor4<float> d_o = converted<float>(drawn_inputs(kProblem, random, 1)).q;
  test::PlainAttention<float> plain({.algorithm = Algorithm::flash2, .key_rows = 8}, kProblem, inputs);
  const Gradients<float> right = plain.backward(plain.forward(), d_o);
  const auto verified_gradients = [&](const Gradients<float>& gradients, double products) {
    return verify_gradients(Algorithm::flash2, kProblem, kTiling, {}, inputs, d_o, gradients, {products}, 2);
  };
  const GradientVerification all = verified_gradients(right, 1e9);
  CHECK(all.agrees());
  CHECK_FALSE(all.says_nothing());
  CHECK(all.keys.whole());
  CHECK(all.verdict() == Verdict::right);
  CHECK(all.dk.rows == 2 * 2 * 37);

  const Gradients<double> truth = true_gradients(kProblem, inputs, d_o).gradients;
  const auto bounds = {all.tolerance.dq.value(), all.tolerance.dk.value(), all.tolerance.dv.value()};
  for (const int which : {0, 1, 2}) {
    Gradients<float> planted = right;
    Tensor4<float>& tensor = which == 0 ? planted.dq : which == 1 ? planted.dk : planted.dv;
    const Tensor4<double>& expected = which == 0 ? truth.dq : which == 1 ? truth.dk : truth.dv;
    tensor.matrix(1, 1)(32, 3) =
        static_cast<float>(expected.matrix(1, 1)(32, 3) + 1.01 * bounds.begin()[which]);
    const GradientVerification found = verified_gradients(planted, 1e9);
    CHECK(found.dq.agrees() == (which != 0));
    CHECK(found.dk.agrees() == (which != 1));
    CHECK(found.dv.agrees() == (which != 2));
    const Comparison& wrong = which == 0 ? found.dq : which == 1 ? found.dk : found.dv;
    REQUIRE(wrong.first_wrong);
    CHECK(wrong.first_wrong->at.row == 32);
    CHECK(wrong.first_wrong->at.column == 3);
    CHECK(wrong.wrong_elements == 1);
  }
  // Too small a budget checks the first and last rows of dQ, and no keys; it says so.
  const GradientVerification little = verified_gradients(right, 1);
  CHECK(little.agrees());
  CHECK(little.keys.rows.empty());
  CHECK(little.keys.note.starts_with("dK and dV weren't checked"));
  CHECK(little.dq.rows == 4);
}

}  // namespace
}  // namespace flashsim
