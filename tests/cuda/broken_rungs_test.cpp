// The switches break a rung on the GPU exactly as they break the same tiles on the CPU.
#include <cmath>
#include <string>

#include "core/attention/attend.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/on_device.hpp"

namespace flashsim {
namespace {

struct Broken {
  std::string name;
  Switches switches;
};

std::vector<Broken> ways_to_break() {
  std::vector<Broken> all{{"no maximum", {.subtract_max = false}},
                          {"no rescale", {.rescale = false}},
                          {"neither", {.subtract_max = false, .rescale = false}}};
  for (const FaultFacts& facts : kFaults) all.push_back({std::string(facts.name), {.fault = facts.fault}});
  return all;
}

/// How far off a number may be: of itself in float32; in a narrow type, in which P is rounded on the way, a
/// few last places of the largest number in its row.
double slack_of(NumberType storage, float number, float largest) {
  if (storage == NumberType::fp32) return 2e-5 + 2e-4 * std::fabs(number);
  return (storage == NumberType::fp16 ? 0x1p-9 : 0x1p-6) * std::max(0.05F, std::fabs(largest));
}

/// The largest finite number of a row.
float largest_of(const Tensor4<float>& tensor, std::size_t row) {
  const auto columns = static_cast<std::size_t>(tensor.columns());
  float largest = 0;
  for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
    if (std::isfinite(tensor.data()[i])) largest = std::max(largest, std::fabs(tensor.data()[i]));
  }
  return largest;
}

std::string first_unlike(const Tensor4<float>& got, const Tensor4<float>& expected, NumberType storage) {
  const auto columns = static_cast<std::size_t>(expected.columns());
  for (std::size_t row = 0; row < expected.data().size() / columns; ++row) {
    const float largest = largest_of(expected, row);
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const float a = got.data()[i];
      const float b = expected.data()[i];
      const bool alike =
          a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= slack_of(storage, b, largest);
      if (!alike) return fmt::format("element {} is {} and not {}", i, a, b);
    }
  }
  return "";
}

/// Every kernel that is built with it.
void check_like_cpu(const Problem& problem, const Inputs<float>& inputs, const Broken& broken,
                    double magnitude) {
  for (const KernelFacts& facts : kKernels) {
    if (facts.pass == Pass::backward || check_kernel(facts.kernel, problem, broken.switches)) continue;
    const Method method = method_of(facts.kernel, problem);
    INFO(test::text_of(facts.kernel, problem, method) << ", magnitude " << magnitude << ", " << broken.name);
    const Outputs<float> on_gpu = test::run_on_gpu(facts.kernel, problem, inputs, broken.switches);
    const Outputs<float> on_cpu = attend<float>(problem, method, broken.switches, inputs);
    CHECK(first_unlike(on_gpu.o, on_cpu.o, problem.storage) == "");
    CHECK(first_unlike(on_gpu.lse, on_cpu.lse, NumberType::fp32) == "");
  }
}

TEST_CASE("every switch and fault gives on the GPU what it gives on the CPU", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const Problem ragged{.batch = 2, .heads = 4, .kv_heads = 2, .seq = 300, .kv_seq = 333, .head_dim = 40};
  Problem open = ragged;
  open.causal = false;
  Problem early = ragged;
  early.alignment = CausalAlignment::top_left;
  Problem deep = ragged;
  deep.head_dim = 200;
  Problem empty = ragged;
  empty.kv_seq = 100;
  for (Problem problem : {ragged, open, early, deep, empty}) {
    for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      problem.storage = type;
      for (const double magnitude : {1.0, 3.0}) {
        const Inputs<float> inputs = test::random_inputs(problem, magnitude, 11);
        for (const Broken& broken : ways_to_break()) {
          check_like_cpu(problem, inputs, broken, magnitude);
        }
      }
    }
  }
}

TEST_CASE("a switch that a kernel isn't built with is refused by name") {
  const Problem problem{.storage = NumberType::fp32};
  const auto message = [&](Kernel kernel, const Switches& switches) {
    const auto error = check_kernel(kernel, problem, switches);
    return error ? error->message + " | " + error->hint : "";
  };
  CHECK(message(Kernel::flash_fp32, {.rescale = false, .fault = Fault::finite_mask}) ==
        "03_flash_fp32 is built broken in one way at a time, not with --fault finite-mask and --no-rescale | "
        "no "
        "kernel takes it; run it on the CPU");
  CHECK(message(Kernel::flash_fp32, {.accumulate_in_storage = true}) ==
        "03_flash_fp32 sums in float32, so --accumulate storage means nothing for it | no kernel takes it; "
        "run it "
        "on the CPU");
  CHECK(message(Kernel::flash_fp32, {.fault = Fault::rescale_l_only}) == "");
}

}  // namespace
}  // namespace flashsim
