// What is measured of the rungs: the bytes that they and the GPU's counters count are those of the account.
#include <cstdlib>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/on_device.hpp"

namespace flashsim {
namespace {

DeviceMeasurement measured(Kernel kernel, const Problem& problem, const Method& method,
                           const MeasureHow& how) {
  const Inputs<float> inputs = test::random_inputs(problem, 1, 5);
  const Tensor4<float> d_o = test::random_gradient(problem, 1, 6);
  const auto result =
      test::gpu().measure(test::task_of(kernel, problem, method), device_inputs_of(inputs, d_o), how, {});
  if (!result) throw std::runtime_error(result.error().message);
  return *result;
}

DeviceMeasurement measured(Kernel kernel, const Problem& problem, const MeasureHow& how) {
  return measured(kernel, problem, method_of(kernel, problem), how);
}

std::optional<std::int64_t> reading(const DeviceMeasurement& measurement, std::string_view what) {
  for (const CounterReading& each : measurement.counters) {
    if (each.what == what) return each.value;
  }
  return std::nullopt;
}

std::vector<Problem> shapes() {
  return {{.batch = 1, .heads = 4, .kv_heads = 4, .seq = 512, .kv_seq = 512, .head_dim = 64},
          {.batch = 2, .heads = 4, .kv_heads = 2, .seq = 1000, .kv_seq = 1000, .head_dim = 128},
          {.batch = 1, .heads = 2, .kv_heads = 2, .seq = 300, .kv_seq = 777, .head_dim = 96, .causal = false},
          {.batch = 1, .heads = 2, .kv_heads = 2, .seq = 700, .kv_seq = 300, .head_dim = 128}};
}

/// L, which every kernel writes, and the account of standard attention doesn't have.
Bytes lse_beside(Kernel kernel, const Problem& p) {
  if (facts_of(kernel).algorithm != Algorithm::standard) return {};
  return Bytes(p.batch * p.heads * p.seq * size_of(NumberType::fp32));
}

TEST_CASE("a kernel's own count of its loads and stores is the account's", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const KernelFacts& facts : kKernels) {
    if (!facts.counts_itself) continue;
    for (const NumberType type : facts.storage) {
      for (Problem problem : shapes()) {
        problem.storage = type;
        INFO(test::text_of(facts.kernel, problem, method_of(facts.kernel, problem)));
        const auto counted =
            measured(facts.kernel, problem, {.repeats = 1, .counters = CounterSource::instrumented});
        const Flow sm = predict(problem, method_of(facts.kernel, problem)).tally.sm_total();
        CHECK(counted.bytes == ByteSource::instrumented);
        CHECK(reading(counted, "sm_read_bytes") == sm.read.value());
        CHECK(reading(counted, "sm_written_bytes") ==
              (sm.written + lse_beside(facts.kernel, problem)).value());
      }
    }
  }
}

TEST_CASE("the GPU's counters see the account's bytes cross into and out of the SMs", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (Problem problem : shapes()) {
    problem.storage = NumberType::fp32;
    const auto counted =
        measured(Kernel::flash_fp32, problem, {.repeats = 1, .counters = CounterSource::gpu});
    if (counted.bytes != ByteSource::measured) {
      WARN("no counters: " << counted.no_counters);
      return;
    }
    INFO(test::text_of(Kernel::flash_fp32, problem, method_of(Kernel::flash_fp32, problem)));
    const Flow sm = predict(problem, method_of(Kernel::flash_fp32, problem)).tally.sm_total();
    const auto share = [&](const char* what, Bytes model) {
      return static_cast<double>(reading(counted, what).value()) / static_cast<double>(model.value()) - 1;
    };
    CHECK(std::fabs(share("sm_read_bytes", sm.read)) <= 0.01);
    CHECK(std::fabs(share("sm_written_bytes", sm.written)) <= 0.02);
    CHECK(reading(counted, "tensor_instructions") == 0);
  }
}

/// 06 keeps the sum of dQ in whole tiles of 64 packed rows and 64 or 128 columns: what is on top of the
/// account.
std::int64_t padding_of_sum(const KernelFacts& facts, const Problem& problem, const Method& method) {
  if (facts.pass != Pass::backward || method.deterministic) return 0;
  const std::int64_t rows = problem.heads / problem.kv_heads * problem.seq;
  const std::int64_t whole = (rows + 63) / 64 * 64 * (problem.head_dim <= 64 ? 64 : 128);
  return problem.batch * problem.kv_heads * (whole - rows * problem.head_dim) * size_of(NumberType::fp32);
}

TEST_CASE("the peak of a run is that of the account, to the byte", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const KernelFacts& facts : kKernels) {
    for (Problem problem : shapes()) {
      problem.storage = facts.storage.front();
      if (check_kernel(facts.kernel, problem, {})) continue;
      for (const Method& method : test::methods_of(facts.kernel, problem)) {
        INFO(test::text_of(facts.kernel, problem, method));
        const auto run =
            measured(facts.kernel, problem, method, {.repeats = 1, .counters = CounterSource::none});
        const Bytes peak = predict(problem, method).tally.peak_allocated;
        // The pool hands out whole units of 512 bytes, to each tensor that is made.
        constexpr std::int64_t kMostTensors = 5;
        const std::int64_t over =
            (run.peak_memory - run.library_workspace - lse_beside(facts.kernel, problem)).value() -
            peak.value();
        CHECK(over >= padding_of_sum(facts, problem, method));
        CHECK(over < padding_of_sum(facts, problem, method) + kMostTensors * 512);
      }
    }
  }
}

TEST_CASE("without permission bytes are modelled or instrumented, and the remedy is told", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  ::setenv("FLASHSIM_COUNTERS", "denied", 1);
  Problem problem = shapes()[0];
  problem.storage = NumberType::fp32;
  const auto own = measured(Kernel::flash_fp32, problem, {.repeats = 3});
  const auto modelled = measured(Kernel::standard_cublas, problem, {.repeats = 3});
  const auto asked = measured(Kernel::flash_fp32, problem, {.repeats = 3, .counters = CounterSource::gpu});
  ::unsetenv("FLASHSIM_COUNTERS");
  CHECK(own.bytes == ByteSource::instrumented);
  CHECK(modelled.bytes == ByteSource::modelled);
  CHECK(asked.bytes == ByteSource::modelled);
  for (const DeviceMeasurement* each : {&own, &modelled, &asked}) {
    CHECK(each->seconds.size() == 3);
    CHECK(each->no_counters.find("administrators") != std::string::npos);
    CHECK(each->remedy.find("NVreg_RestrictProfilingToAdminUsers=0") != std::string::npos);
  }
}

TEST_CASE("the kernels that are kept spill nothing, and fit an SM as often as the model has it", "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const std::int64_t head_dim : {32, 64, 128, 256}) {
    Problem problem = shapes()[0];
    problem.head_dim = head_dim;
    problem.storage = NumberType::fp32;
    INFO("d " << head_dim);
    const auto run = measured(Kernel::flash_fp32, problem, {.repeats = 1, .counters = CounterSource::none});
    REQUIRE(run.kernels.size() == 1);
    CHECK(run.kernels[0].local_memory_per_thread == Bytes());
    CHECK(run.kernels[0].blocks_per_sm == habits_of(Kernel::flash_fp32, problem).blocks_per_sm);
  }
}

TEST_CASE("the kernels on tensor cores tell of every CUDA kernel that the account has, and none spills",
          "[.][gpu]") {
  FLASHSIM_NEEDS_GPU();
  for (const Kernel kernel : {Kernel::flash_tensor, Kernel::flash_split_kv, Kernel::flash_backward}) {
    for (const std::int64_t head_dim : {32, 64, 128, 256}) {
      Problem problem = shapes()[0];
      problem.head_dim = head_dim;
      if (check_kernel(kernel, problem, {})) continue;
      for (const Method& method : test::methods_of(kernel, problem)) {
        INFO(test::text_of(kernel, problem, method));
        const auto run = measured(kernel, problem, method, {.repeats = 1, .counters = CounterSource::none});
        const auto launches = predict(problem, method).tally.kernels;
        REQUIRE(run.kernels.size() == launches.size());
        for (std::size_t i = 0; i < launches.size(); ++i) {
          CHECK(run.kernels[i].name == launches[i].name);
          CHECK(run.kernels[i].local_memory_per_thread == Bytes());
        }
      }
    }
  }
}

}  // namespace
}  // namespace flashsim
