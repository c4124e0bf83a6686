// Every rung of the backward pass makes the gradients: of PyTorch's golden cases, of inputs that leave rows
// and keys without a part in anything, and of random shapes, each against float64, added up in HBM and
// deterministic.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/attention/verification.hpp"
#include "core/problem/mask.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/on_device.hpp"
#include "tests/golden_cases.hpp"

namespace flashsim {
namespace {

using test::kInfinity;
using test::kNaN;

constexpr VerificationBudget kEveryRow{.products = kInfinity};

bool all_zero(const Tensor4<float>& tensor) {
  return std::all_of(tensor.data().begin(), tensor.data().end(), [](float each) { return each == 0; });
}

/// Makes the gradients in both ways, each twice: against the truth, every row; of the O and L of the forward
/// kernel; with the same bits where that is promised. dK and dV have one block each and always do.
void check_gradients(Kernel kernel, const Problem& problem, const Inputs<float>& inputs,
                     const Tensor4<float>& d_o, const VerificationBudget& budget = kEveryRow) {
  const Outputs<float> forward = test::run_on_gpu(kSavesForBackward, problem, inputs);
  for (const Method& method : test::methods_of(kernel, problem)) {
    INFO(test::text_of(kernel, problem, method));
    const DeviceTask task = test::task_of(kernel, problem, method);
    const DeviceExecution first = test::gradients_on_gpu(task, inputs, d_o);
    const DeviceExecution second = test::gradients_on_gpu(task, inputs, d_o);
    CHECK(test::same_bits(first.outputs.o, forward.o));
    CHECK(test::same_bits(first.outputs.lse, forward.lse));
    CHECK(test::same_bits(first.gradients->dk, second.gradients->dk));
    CHECK(test::same_bits(first.gradients->dv, second.gradients->dv));
    const bool same = test::same_bits(first.gradients->dq, second.gradients->dq);
    if (method.deterministic) CHECK(same);
    for (const DeviceExecution* run : {&first, &second}) {
      if (run == &second && same) break;
      const GradientVerification verification = verify_gradients<float>(
          method.algorithm, problem, method.tiling, {}, inputs, d_o, *run->gradients, budget, 2);
      CHECK(verification.dq.agrees());
      CHECK(verification.dk.agrees());
      CHECK(verification.dv.agrees());
    }
  }
}

Tensor4<float> stored_gradient(const Problem& problem, Tensor4<float> d_o) {
  for (float& each : d_o.data()) each = stored_as(problem.storage, each);
  return d_o;
}

TEST_CASE("every backward rung gives the gradients of PyTorch's golden cases", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const test::GoldenCase& golden : test::golden_cases()) {
    INFO(golden.name);
    for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
      Problem problem = golden.given.problem;
      problem.storage = type;
      const Inputs<float> inputs = test::stored(problem, converted<float>(golden.given.inputs));
      const Tensor4<float> d_o = stored_gradient(problem, converted_tensor<float>(golden.d_o));
      for (const Kernel kernel : test::kernels_for(problem, type, Pass::backward)) {
        check_gradients(kernel, problem, inputs, d_o);
      }
    }
  }
}

TEST_CASE("gradients are right on random shapes", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  constexpr int kShapes = 150;
  test::RandomShapes shapes(61);
  std::mt19937_64 engine(8);
  for (int n = 0; n < kShapes; ++n) {
    Problem problem = shapes.next(n % 3 == 0 ? 20 : 400).problem;
    if (engine() % 3 != 0) problem.head_dim = static_cast<std::int64_t>(1 + engine() % 128);
    for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
      problem.storage = type;
      const Inputs<float> inputs = test::random_inputs(problem, 1.5, engine());
      const Tensor4<float> d_o = test::random_gradient(problem, 1, engine());
      for (const Kernel kernel : test::kernels_for(problem, type, Pass::backward)) {
        check_gradients(kernel, problem, inputs, d_o);
      }
    }
  }
}

TEST_CASE("rows that see nothing and keys that nobody sees have gradients of zero", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const Kernel kernel : test::kernels_for({.head_dim = 64}, NumberType::fp16, Pass::backward)) {
    // The first 130 of 200 rows see none of the 70 keys.
    Problem problem{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 200, .kv_seq = 70, .head_dim = 64};
    Inputs<float> inputs = test::random_inputs(problem, 1, 3);
    check_gradients(kernel, problem, inputs, test::random_gradient(problem, 1, 4));
    // Aligned top-left, nobody sees the last 260 of 300 keys.
    problem.seq = 40;
    problem.kv_seq = 300;
    problem.alignment = CausalAlignment::top_left;
    inputs = test::random_inputs(problem, 1, 5);
    check_gradients(kernel, problem, inputs, test::random_gradient(problem, 1, 6));
    for (const Method& method : test::methods_of(kernel, problem)) {
      const auto made = test::gradients_on_gpu(test::task_of(kernel, problem, method), inputs,
                                               test::random_gradient(problem, 1, 6));
      const auto& dk = made.gradients->dk.data();
      CHECK(
          std::all_of(dk.begin() + std::ptrdiff_t{40} * 64, dk.end(), [](float each) { return each == 0; }));
    }
    // Without a gradient of the output there is none of anything.
    const Tensor4<float> none(problem.batch, problem.heads, problem.seq, problem.head_dim);
    for (const Method& method : test::methods_of(kernel, problem)) {
      const auto made = test::gradients_on_gpu(test::task_of(kernel, problem, method), inputs, none);
      CHECK(all_zero(made.gradients->dq));
      CHECK(all_zero(made.gradients->dk));
      CHECK(all_zero(made.gradients->dv));
    }
  }
}

/// The gradients where one element of Q, K, V or dO is `value`: of a query and a key that don't see each
/// other.
void check_with(float value, const Problem& problem, const Inputs<float>& inputs, const Tensor4<float>& d_o) {
  for (const Kernel kernel : test::kernels_for(problem, problem.storage, Pass::backward)) {
    // Query 0 doesn't see the last keys, and key 149 is seen by the last query alone.
    Inputs<float> changed = inputs;
    changed.q.matrix(0, 0)(0, 5) = value;
    check_gradients(kernel, problem, changed, d_o);
    changed = inputs;
    changed.k.matrix(0, 0)(149, 6) = value;
    check_gradients(kernel, problem, changed, d_o);
    changed = inputs;
    changed.v.matrix(0, 0)(149, 7) = value;
    check_gradients(kernel, problem, changed, d_o);
    Tensor4<float> changed_d_o = d_o;
    changed_d_o.matrix(0, 0)(0, 8) = value;
    if (std::isnan(value)) {
      check_gradients(kernel, problem, inputs, changed_d_o);
      continue;
    }
    // The D of the truth is Σ P dP, of ∞ and −∞, and that of a kernel Σ dO O, of one of them: where dK is ∞
    // or NaN, they may differ.
    for (const Method& method : test::methods_of(kernel, problem)) {
      INFO(test::text_of(kernel, problem, method));
      const DeviceTask task = test::task_of(kernel, problem, method);
      const DeviceExecution made = test::gradients_on_gpu(task, inputs, changed_d_o);
      const GradientVerification verification = verify_gradients<float>(
          method.algorithm, problem, method.tiling, {}, inputs, changed_d_o, *made.gradients, kEveryRow, 2);
      CHECK(verification.dq.agrees());
      CHECK(verification.dv.agrees());
      for (std::int64_t key = visible_keys(problem, 0); key < problem.kv_seq; ++key) {
        CHECK(std::isfinite(made.gradients->dk.matrix(0, 0)(key, 0)));
      }
    }
  }
}

TEST_CASE("what isn't finite shows in the gradients of what it is seen with, and in no other", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t head_dim : {33, 64, 128}) {
    for (const std::int64_t seq : {3, 130}) {
      Problem problem{.batch = 1, .heads = 2, .kv_heads = 1, .seq = seq, .kv_seq = 150, .head_dim = head_dim};
      for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
        problem.storage = type;
        const Inputs<float> inputs = test::random_inputs(problem, 1, 21);
        const Tensor4<float> d_o = test::random_gradient(problem, 1, 22);
        for (const double value : {kNaN, kInfinity, -kInfinity}) {
          INFO("one element is " << value);
          check_with(static_cast<float>(value), problem, inputs, d_o);
        }
      }
    }
  }
}

TEST_CASE("a group of any size adds up to one key/value head", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t group : {1, 2, 3, 8, 16}) {
    Problem problem{
        .batch = 2, .heads = 2 * group, .kv_heads = 2, .seq = 190, .kv_seq = 210, .head_dim = 128};
    for (const bool causal : {false, true}) {
      problem.causal = causal;
      const Inputs<float> inputs = test::random_inputs(problem, 1, 7);
      for (const Kernel kernel : test::kernels_for(problem, NumberType::fp16, Pass::backward)) {
        check_gradients(kernel, problem, inputs, test::random_gradient(problem, 1, 8));
      }
    }
  }
}

// For the sanitizers, as the forward rungs have one.
TEST_CASE("gradients of a few shapes of every kind are made to their end", "[.][gpu][small]") {
  FLASHSIM_NEEDS_GPU();
  for (Problem problem : test::small_problems()) {
    for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
      problem.storage = type;
      const Inputs<float> inputs = test::random_inputs(problem, 1, 13);
      for (const Kernel kernel : test::kernels_for(problem, type, Pass::backward)) {
        check_gradients(kernel, problem, inputs, test::random_gradient(problem, 1, 14));
      }
    }
  }
}

TEST_CASE("batch times heads may be beyond 65535 for gradients", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const Problem problem{.batch = 65536, .heads = 2, .kv_heads = 1, .seq = 3, .kv_seq = 5, .head_dim = 8};
  const Inputs<float> inputs = test::random_inputs(problem, 1, 3);
  for (const Kernel kernel : test::kernels_for(problem, NumberType::fp16, Pass::backward)) {
    check_gradients(kernel, problem, inputs, test::random_gradient(problem, 1, 4), {});
  }
}

TEST_CASE("a backward rung without dO is refused", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const Problem problem{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 8, .kv_seq = 8, .head_dim = 8};
  const Inputs<float> inputs = test::random_inputs(problem, 1, 3);
  const Kernel kernel = Kernel::flash_backward;
  const auto result =
      execute_on(test::gpu(), test::task_of(kernel, problem, method_of(kernel, problem)), inputs);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message == "a kernel of the backward pass was given no dO of its problem's shape");
}

}  // namespace
}  // namespace flashsim
