// Every rung of the ladder computes attention: PyTorch's golden cases, inputs that have broken kernels, and
// random shapes, each against float64 and with the same bits twice.
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "core/attention/truth.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/on_device.hpp"
#include "tests/golden_cases.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_products;
using test::kernels_for;
using test::kInfinity;
using test::kNaN;
using test::run_on_gpu;

bool same_bits(const Outputs<float>& a, const Outputs<float>& b) {
  return test::same_bits(a.o, b.o) && test::same_bits(a.lse, b.lse);
}

/// Runs the kernel twice in every way that it leaves open, and holds what comes out against the truth, every
/// row of it.
void check_against_truth(Kernel kernel, const Problem& problem, const Inputs<float>& inputs) {
  for (const Method& method : test::methods_of(kernel, problem)) {
    INFO(test::text_of(kernel, problem, method));
    const DeviceTask task = test::task_of(kernel, problem, method);
    const Outputs<float> first = run_on_gpu(task, inputs);
    CHECK(same_bits(first, run_on_gpu(task, inputs)));
    const VerificationBudget every_row{.products = std::numeric_limits<double>::infinity()};
    const Verification verification = verify<float>(problem, method, {}, inputs, first, every_row, 2);
    CHECK(verification.agrees());
    // Large scores in a narrow type leave no tolerance that says anything.
    if (problem.storage == NumberType::fp32) CHECK_FALSE(verification.says_nothing());
  }
}

TEST_CASE("every rung gives PyTorch's golden results", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const test::GoldenCase& golden : test::golden_cases()) {
    INFO(golden.name);
    for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      Problem problem = golden.given.problem;
      problem.storage = type;
      const Inputs<float> inputs = test::stored(problem, converted<float>(golden.given.inputs));
      const std::vector<Kernel> kernels = kernels_for(problem, type);
      CHECK_FALSE(kernels.empty());
      for (const Kernel kernel : kernels) check_against_truth(kernel, problem, inputs);
    }
  }
}

/// The first number that isn't what it should be.
std::string first_off(const std::vector<float>& got, const std::vector<double>& expected, double slack) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<double>(got[i]);
    const bool same = value == expected[i] || (std::isnan(value) && std::isnan(expected[i])) ||
                      std::fabs(value - expected[i]) <= slack * std::max(1.0, std::fabs(expected[i]));
    if (!same) return fmt::format("element {} is {} and not {}", i, value, expected[i]);
  }
  return "";
}

/// No finite number of the inputs is beyond the type.
bool holds(NumberType type, const Inputs<float>& inputs) {
  for (const Tensor4<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (const float each : tensor->data()) {
      if (std::isfinite(each) && !std::isfinite(stored_as(type, each))) return false;
    }
  }
  return true;
}

/// What every kernel gives of small inputs, as far as it isn't what it should be: in float32 within `slack`,
/// and where nothing is broken in the narrow types within a few of their last places, as far as they can
/// hold the inputs.
void check_small(const Given& given, const std::vector<double>& o, const std::vector<double>& lse,
                 const Switches& switches = {}, double slack = 1e-6, bool on_tensor_units = true) {
  const Inputs<float> exact = converted<float>(given.inputs);
  for (const auto& [type, places] :
       {std::pair{NumberType::fp32, slack}, {NumberType::fp16, 0x1p-8}, {NumberType::bf16, 0x1p-5}}) {
    if (type != NumberType::fp32 && (switches.broken() || !holds(type, exact))) continue;
    Problem problem = given.problem;
    problem.storage = type;
    const Inputs<float> inputs = test::stored(problem, exact);
    for (const KernelFacts& facts : kKernels) {
      if (facts.pass == Pass::backward || check_kernel(facts.kernel, problem, switches)) continue;
      if (!on_tensor_units && habits_of(facts.kernel, problem).fragments) continue;
      for (const Method& method : test::methods_of(facts.kernel, problem)) {
        INFO(test::text_of(facts.kernel, problem, method));
        const Outputs<float> got = run_on_gpu(test::task_of(facts.kernel, problem, method, switches), inputs);
        CHECK(first_off(got.o.data(), o, places) == "");
        CHECK(first_off(got.lse.data(), lse, places) == "");
      }
    }
  }
}

TEST_CASE("inputs that have broken kernels break no rung", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const double ln2 = std::log(2.0);
  // Rows that the mask or the scores leave empty.
  Given given = given_products({0, 0, 0, 0, 0}, {0, 0}, {1, 3});
  given.problem.causal = true;
  check_small(given, {0, 0, 0, 1, 2}, {-kInfinity, -kInfinity, -kInfinity, 0, ln2});
  check_small(given_products({1}, {-kInfinity, -kInfinity}, {5, 7}), {0}, {-kInfinity});
  // A matrix product of fragments multiplies them all, and 0 · NaN is NaN.
  check_small(given_products({1}, {-kInfinity, -kInfinity}, {kNaN, kInfinity}), {0}, {-kInfinity}, {}, 1e-6,
              false);
  check_small(given_products({1}, {-kInfinity, -kInfinity, 10, -kInfinity}, {7, 7, 3, 7}), {3}, {10});
  // A first tile of −∞ before the one that counts.
  std::vector<double> scores(200, -kInfinity);
  scores[150] = 10;
  std::vector<double> values(200, 7);
  values[150] = 3;
  check_small(given_products({1}, scores, values), {3}, {10});
  // Scores below a stand-in for −∞, and the lowest there are.
  given = given_products({-20000, 0}, {1, 0}, {1, 100});
  given.problem.causal = true;
  check_small(given, {1, 50.5}, {-20000, ln2});
  const double lowest = std::numeric_limits<float>::lowest();
  check_small(given_products({1}, {lowest, lowest, lowest}, {0, 3, 6}), {3}, {lowest});
  // What lies behind the mask never shows, and what doesn't shows in its row alone.
  given = given_products({1, 1}, {0, kNaN}, {5, 9});
  given.problem.causal = true;
  check_small(given, {5, kNaN}, {0, kNaN});
  for (const double hidden : {kNaN, kInfinity, -kInfinity}) {
    given = given_products({1, 1}, {0, 0}, {5, hidden});
    given.problem.causal = true;
    check_small(given, {5, hidden}, {0, ln2});
  }
  check_small(given_products({1}, {kInfinity, 0}, {5, 9}), {kNaN}, {kNaN});
  check_small(given_products({1}, {0, kNaN}, {5, 9}), {kNaN}, {kNaN});
  // Rising and falling maxima, with and without the maximum.
  check_small(given_products({1}, {0, std::log(3.0)}, {0, 1}), {0.75}, {std::log(4.0)});
  check_small(given_products({1}, {89, 89}, {1, 3}), {2}, {89 + ln2});
  check_small(given_products({1}, {89, 89}, {1, 3}), {kNaN}, {kInfinity}, {.subtract_max = false});
  check_small(given_products({1}, {-104, -104}, {1, 3}), {kNaN}, {-kInfinity}, {.subtract_max = false});
  check_small(given_products({1}, {87, 87}, {1, 3}), {2}, {87 + ln2}, {.subtract_max = false});
  check_small(given_products({1}, {10, 10, 10, 10}, {1, 2, 3, 4}), {2.5}, {10 + std::log(4.0)});
  // Padding in the last tile.
  for (const std::int64_t n : {1, 64, 192}) {
    const auto count = static_cast<std::size_t>(n);
    check_small(given_products(std::vector<double>(count, 0), std::vector<double>(count, 0),
                               std::vector<double>(count, 1)),
                std::vector<double>(count, 1), std::vector<double>(count, std::log(static_cast<double>(n))),
                {},
                static_cast<double>(n) * 0x1p-23);  // n equal weights are rounded alike
  }
  // A long sum of ones.
  check_small(given_products({0}, std::vector<double>(4096, 0), std::vector<double>(4096, 1)), {1},
              {std::log(4096.0)}, {}, 4096 * 0x1p-23);
  // The two alignments.
  std::vector<double> rising(128);
  for (std::size_t j = 0; j < rising.size(); ++j) rising[j] = static_cast<double>(j);
  given = given_products({0, 0, 0}, std::vector<double>(128, 0), rising);
  given.problem.causal = true;
  check_small(given, {62.5, 63, 63.5}, {std::log(126.0), std::log(127.0), std::log(128.0)});
  given.problem.alignment = CausalAlignment::top_left;
  check_small(given, {0, 0.5, 1}, {0, ln2, std::log(3.0)});
}

TEST_CASE("what isn't finite in V shows in the rows that see it, and in no other", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t head_dim : {33, 64, 128, 200}) {
    for (const std::int64_t seq : {3, 40, 130}) {
      Problem problem{.batch = 1, .heads = 2, .kv_heads = 1, .seq = seq, .kv_seq = 150, .head_dim = head_dim};
      for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
        problem.storage = type;
        Inputs<float> inputs = test::stored(problem, test::random_inputs(problem, 1, 19));
        const auto plant = [&](std::int64_t key, std::int64_t column, double value) {
          inputs.v.data()[static_cast<std::size_t>(key * head_dim + column)] = static_cast<float>(value);
        };
        // Seen by the last row alone, by the last three, and by all.
        plant(149, 0, kNaN);
        plant(147, head_dim - 1, kInfinity);
        plant(15, 9, -kInfinity);
        // Both in one column: ∞ − ∞ for who sees both.
        plant(100, head_dim / 2, kInfinity);
        plant(148, head_dim / 2, -kInfinity);
        for (const Kernel kernel : kernels_for(problem, type)) check_against_truth(kernel, problem, inputs);
      }
    }
  }
}

TEST_CASE("float32 isn't TF32 on any rung", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const float entry = 1 + 0x1p-11F;
  Problem problem{.batch = 1,
                  .heads = 1,
                  .kv_heads = 1,
                  .seq = 1,
                  .kv_seq = 1,
                  .head_dim = 64,
                  .causal = false,
                  .storage = NumberType::fp32};
  Inputs<float> inputs;
  for (Tensor4<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    *tensor = Tensor4<float>(1, 1, 1, 64);
    std::fill(tensor->data().begin(), tensor->data().end(), entry);
  }
  for (const Kernel kernel : kernels_for(problem, NumberType::fp32)) {
    INFO(facts_of(kernel).name);
    const Outputs<float> got = run_on_gpu(kernel, problem, inputs);
    CHECK(std::fabs(double{got.lse.data()[0]} - 8.0078144) <= 1e-6);
    CHECK(got.o.data()[63] == entry);
  }
}

TEST_CASE("grouped heads are repeated on every rung", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  Problem problem{.batch = 1, .heads = 4, .kv_heads = 2, .seq = 1, .kv_seq = 1, .head_dim = 1};
  Inputs<float> inputs{
      Tensor4<float>(1, 4, 1, 1), Tensor4<float>(1, 2, 1, 1), Tensor4<float>(1, 2, 1, 1), {}};
  inputs.v.data() = {0, 1};
  for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    problem.storage = type;
    for (const Kernel kernel : kernels_for(problem, type)) {
      INFO(facts_of(kernel).name);
      CHECK(run_on_gpu(kernel, problem, inputs).o.data() == std::vector<float>{0, 0, 1, 1});
    }
  }
}

TEST_CASE("every rung is right on random shapes, twice with the same bits", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  constexpr int kShapes = 150;
  test::RandomShapes shapes(51);
  std::mt19937_64 engine(7);
  for (int n = 0; n < kShapes; ++n) {
    Problem problem = shapes.next(n % 3 == 0 ? 20 : 400).problem;
    if (engine() % 3 != 0) problem.head_dim = static_cast<std::int64_t>(1 + engine() % 256);
    for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      problem.storage = type;
      const Inputs<float> inputs = test::random_inputs(problem, 1.5, engine());
      for (const Kernel kernel : kernels_for(problem, type)) check_against_truth(kernel, problem, inputs);
    }
  }
}

// For the sanitizers, under which a kernel takes a thousand times as long: compute-sanitizer test_cuda
// "[small]".
TEST_CASE("a few shapes of every kind, and every broken kernel, run to their end", "[.][gpu][small]") {
  FLASHSIM_NEEDS_GPU();
  for (Problem problem : test::small_problems()) {
    for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      problem.storage = type;
      const Inputs<float> inputs = test::random_inputs(problem, 1, 13);
      for (const Kernel kernel : kernels_for(problem, type)) {
        for (const Method& method : test::methods_of(kernel, problem)) {
          INFO(test::text_of(kernel, problem, method));
          const Outputs<float> got = run_on_gpu(test::task_of(kernel, problem, method), inputs);
          CHECK(verify<float>(problem, method, {}, inputs, got).agrees());
        }
      }
    }
  }
  for (const KernelFacts& facts : kKernels) {
    if (!facts.breaks) continue;
    Problem problem = test::small_problems().front();
    problem.storage = facts.storage.front();
    const Inputs<float> inputs = test::random_inputs(problem, 1, 17);
    for (const FaultFacts& fault : kFaults) {
      run_on_gpu(facts.kernel, problem, inputs, {.fault = fault.fault});
    }
    run_on_gpu(facts.kernel, problem, inputs, {.rescale = false});
    run_on_gpu(facts.kernel, problem, inputs, {.subtract_max = false});
  }
}

TEST_CASE("batch times heads may be beyond 65535 on every rung", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t batch : {65535, 65536, 70001}) {
    const Problem problem{.batch = batch,
                          .heads = 2,
                          .kv_heads = 1,
                          .seq = 3,
                          .kv_seq = 5,
                          .head_dim = 8,
                          .storage = NumberType::fp32};
    for (const NumberType type : {NumberType::fp32, NumberType::fp16}) {
      Problem typed = problem;
      typed.storage = type;
      const Inputs<float> inputs = test::random_inputs(typed, 1, 3);
      for (const Kernel kernel : kernels_for(typed, type)) check_against_truth(kernel, typed, inputs);
    }
  }
}

TEST_CASE("few queries over many keys are right in any number of parts, and groups of any size", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t seq : {1, 2, 5, 33}) {
    for (const std::int64_t group : {1, 3, 8, 32}) {
      for (const bool causal : {false, true}) {
        const Problem problem{.batch = 2,
                              .heads = 2 * group,
                              .kv_heads = 2,
                              .seq = seq,
                              .kv_seq = 1000 + seq,
                              .head_dim = group == 3 ? 80 : 128,
                              .causal = causal,
                              .storage = group == 8 ? NumberType::bf16 : NumberType::fp16};
        const Inputs<float> inputs = test::random_inputs(problem, 2, 23);
        check_against_truth(Kernel::flash_split_kv, problem, inputs);
      }
    }
  }
}

TEST_CASE("sums of narrow types neither overflow nor stall", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  // 4 · 60000 is beyond fp16; a sum of ones in fp16 sticks at 2048, in bf16 at 256.
  for (const auto& [type, keys, value] : {std::tuple{NumberType::fp16, 4, 60000.0F},
                                          {NumberType::fp16, 4096, 1.0F},
                                          {NumberType::bf16, 4096, 1.0F}}) {
    const Problem problem{.batch = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .seq = 1,
                          .kv_seq = keys,
                          .head_dim = 8,
                          .causal = false,
                          .scale = 1,
                          .storage = type};
    Inputs<float> inputs{
        Tensor4<float>(1, 1, 1, 8), Tensor4<float>(1, 1, keys, 8), Tensor4<float>(1, 1, keys, 8), {}};
    std::fill(inputs.v.data().begin(), inputs.v.data().end(), stored_as(type, value));
    for (const Kernel kernel : kernels_for(problem, type)) {
      INFO(test::text_of(kernel, problem, method_of(kernel, problem)));
      const Outputs<float> got = run_on_gpu(kernel, problem, inputs);
      CHECK(got.o.data()[0] == stored_as(type, value));
      CHECK(std::fabs(double{got.lse.data()[0]} - std::log(static_cast<double>(keys))) <= 1e-5);
    }
  }
}

TEST_CASE("score matrices of more than 2³² elements are right on every rung", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const Problem problem{.batch = 64,
                        .heads = 17,
                        .kv_heads = 17,
                        .seq = 2048,
                        .kv_seq = 2048,
                        .head_dim = 8,
                        .storage = NumberType::fp16};
  if (test::gpu().facts()->free_memory < Bytes(std::int64_t{12} << 30)) {
    WARN("skipped: less than 12 GiB of device memory are free");
    return;
  }
  const Inputs<float> inputs = test::random_inputs(problem, 1, 19);
  for (const Kernel kernel : kernels_for(problem, NumberType::fp16)) {
    INFO(test::text_of(kernel, problem, method_of(kernel, problem)));
    const Outputs<float> got = run_on_gpu(kernel, problem, inputs);
    CHECK(verify<float>(problem, method_of(kernel, problem), {}, inputs, got, {}, 2).agrees());
  }
}

TEST_CASE("a problem that the device's memory can't hold is refused with its size", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  // S of 2 TiB; the inputs themselves are small.
  const Problem problem{.batch = 1,
                        .heads = 1,
                        .kv_heads = 1,
                        .seq = 1 << 20,
                        .kv_seq = 1 << 20,
                        .head_dim = 1,
                        .storage = NumberType::fp16};
  const std::vector<float> numbers(1 << 20, 1.0F);
  const auto result =
      test::gpu().execute(test::task_of(Kernel::standard, problem, method_of(Kernel::standard, problem)),
                          {numbers, numbers, numbers});
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("take 2.00 TiB on the device with 01_standard, and ") !=
        std::string::npos);
}

}  // namespace
}  // namespace flashsim
