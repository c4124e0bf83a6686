// Kernels of the ladder on the GPU that is here, held against the CPU. A test that needs one begins with
// FLASHSIM_NEEDS_GPU() and is skipped, and says so, where there is none.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/attention/tensors.hpp"
#include "core/attention/verification.hpp"
#include "core/base/rounding.hpp"
#include "core/problem/device.hpp"
#include "cuda/backend.hpp"
#include "tests/random_problem.hpp"

namespace flashsim::test {

/// Why no kernel can run here; empty where one can.
inline const std::string& no_gpu() {
  static const std::string why = cuda_devices().missing;
  return why;
}

#define FLASHSIM_NEEDS_GPU()                                        \
  if (!flashsim::test::no_gpu().empty()) {                          \
    std::printf("skipped: %s\n", flashsim::test::no_gpu().c_str()); \
    return;                                                         \
  }                                                                 \
  static_assert(true)

inline const DeviceBackend& gpu() {
  static const DeviceBackend backend = cuda_backend();
  return backend;
}

inline DeviceInputs device_inputs_of(const Inputs<float>& inputs) {
  return {.q = inputs.q.data(), .k = inputs.k.data(), .v = inputs.v.data()};
}

/// O and L of a kernel. Throws what the device says.
inline Outputs<float> run_on_gpu(Kernel kernel, const Problem& problem, const Inputs<float>& inputs,
                                 const Switches& switches = {}) {
  auto result =
      gpu().execute({.kernel = kernel, .problem = problem, .switches = switches}, device_inputs_of(inputs));
  if (!result) throw std::runtime_error(result.error().message);
  Outputs<float> outputs{Tensor4<float>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                         Tensor4<float>(problem.batch, problem.heads, problem.seq, 1)};
  outputs.o.data() = std::move(result->o);
  outputs.lse.data() = std::move(result->lse);
  return outputs;
}

/// Random inputs of the problem's shape, of the size `magnitude`, in its storage type.
inline Inputs<float> random_inputs(const Problem& p, double magnitude, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto fill = [&](Tensor4<float> tensor) {
    for (float& each : tensor.data()) {
      constexpr double kHalf = 0x1p-53;
      const double unit = 2 * (static_cast<double>(engine() >> 11U) * kHalf) - 1;
      each = stored_as(p.storage, static_cast<float>(magnitude * unit));
    }
    return tensor;
  };
  return {fill(Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim)),
          fill(Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)),
          fill(Tensor4<float>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)),
          {}};
}

inline std::string text_of(Kernel kernel, const Problem& problem) {
  return fmt::format("{} on {}", facts_of(kernel).name,
                     text_of(Shape{problem, method_of(kernel, problem).tiling}));
}

}  // namespace flashsim::test
