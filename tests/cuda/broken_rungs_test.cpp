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

/// Both not numbers, or near each other.
bool alike(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= 2e-5F + 2e-4F * std::max(std::fabs(a), std::fabs(b));
}

std::string first_unlike(const Tensor4<float>& got, const Tensor4<float>& expected) {
  for (std::size_t i = 0; i < got.data().size(); ++i) {
    if (!alike(got.data()[i], expected.data()[i])) {
      return fmt::format("element {} is {} and not {}", i, got.data()[i], expected.data()[i]);
    }
  }
  return "";
}

TEST_CASE("every switch and fault gives on the GPU what it gives on the CPU", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  const Problem ragged{.batch = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .seq = 300,
                       .kv_seq = 333,
                       .head_dim = 40,
                       .storage = NumberType::fp32};
  Problem open = ragged;
  open.causal = false;
  Problem early = ragged;
  early.alignment = CausalAlignment::top_left;
  Problem deep = ragged;
  deep.head_dim = 200;
  Problem empty = ragged;
  empty.kv_seq = 100;
  for (const Problem& problem : {ragged, open, early, deep, empty}) {
    for (const double magnitude : {1.0, 3.0}) {
      const Inputs<float> inputs = test::random_inputs(problem, magnitude, 11);
      for (const Broken& broken : ways_to_break()) {
        for (const KernelFacts& facts : kKernels) {
          if (check_kernel(facts.kernel, problem, broken.switches)) continue;
          INFO(test::text_of(facts.kernel, problem) << ", magnitude " << magnitude << ", " << broken.name);
          const Outputs<float> on_gpu = test::run_on_gpu(facts.kernel, problem, inputs, broken.switches);
          const Outputs<float> on_cpu =
              attend<float>(problem, method_of(facts.kernel, problem), broken.switches, inputs);
          CHECK(first_unlike(on_gpu.o, on_cpu.o) == "");
          CHECK(first_unlike(on_gpu.lse, on_cpu.lse) == "");
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
