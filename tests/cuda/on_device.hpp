// Kernels of the ladder on the GPU that is here, held against the CPU. A test that needs one begins with
// FLASHSIM_NEEDS_GPU() and is skipped, and says so, where there is none.
#pragma once

#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/attention/tensors.hpp"
#include "core/attention/verification.hpp"
#include "core/base/rounding.hpp"
#include "core/problem/device.hpp"
#include "core/study/device_execution.hpp"
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

inline DeviceTask task_of(Kernel kernel, const Problem& problem, const Method& method,
                          const Switches& switches = {}) {
  return {.kernel = kernel, .problem = problem, .switches = switches, .method = method};
}

/// A kernel's own method in every way that it leaves open: split-kv unsplit, in two parts, a key tile a part,
/// and with parts that hold no key; gradients that are added up in HBM, and deterministic ones.
inline std::vector<Method> methods_of(Kernel kernel, const Problem& problem) {
  Method method = method_of(kernel, problem);
  if (method.pass == Pass::backward) {
    Method deterministic = method;
    deterministic.deterministic = true;
    return {method, deterministic};
  }
  if (method.algorithm != Algorithm::split_kv) return {method};
  std::vector<Method> all;
  const std::int64_t key_tiles = (problem.kv_seq - 1) / method.tiling.key_rows + 1;
  std::int64_t last = 0;
  for (const std::int64_t splits : {std::int64_t{1}, std::int64_t{2}, key_tiles, key_tiles + 3}) {
    if (splits <= last) continue;
    last = method.splits = splits;
    all.push_back(method);
  }
  return all;
}

/// The kernels of the pass that take the problem in that type.
inline std::vector<Kernel> kernels_for(Problem problem, NumberType type, Pass pass = Pass::forward) {
  problem.storage = type;
  std::vector<Kernel> kernels;
  for (const KernelFacts& facts : kKernels) {
    if (facts.pass == pass && !check_kernel(facts.kernel, problem, {})) kernels.push_back(facts.kernel);
  }
  return kernels;
}

/// For the sanitizers: masked and not, rows of whole pieces and not, rows that see nothing, a tile of them.
inline std::vector<Problem> small_problems() {
  const Problem causal{.batch = 2, .heads = 2, .kv_heads = 1, .seq = 150, .kv_seq = 141, .head_dim = 40};
  Problem open = causal;
  open.causal = false;
  open.head_dim = 33;
  Problem empty = causal;
  empty.kv_seq = 70;
  empty.head_dim = 128;
  Problem blind = empty;  // the first tile of 04
  blind.head_dim = 200;
  Problem deep = causal;
  deep.alignment = CausalAlignment::top_left;
  deep.head_dim = 200;
  return {causal, open, empty, blind, deep};
}

/// O and L of a kernel. Throws what the device says.
inline Outputs<float> run_on_gpu(const DeviceTask& task, const Inputs<float>& inputs) {
  auto result = execute_on(gpu(), task, inputs);
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result->outputs);
}

inline Outputs<float> run_on_gpu(Kernel kernel, const Problem& problem, const Inputs<float>& inputs,
                                 const Switches& switches = {}) {
  return run_on_gpu(task_of(kernel, problem, method_of(kernel, problem), switches), inputs);
}

/// The gradients that a kernel makes, and the O and L that it makes them of. Throws what the device says.
inline DeviceExecution gradients_on_gpu(const DeviceTask& task, const Inputs<float>& inputs,
                                        const Tensor4<float>& d_o) {
  auto result = execute_on(gpu(), task, inputs, d_o);
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

inline bool same_bits(const Tensor4<float>& a, const Tensor4<float>& b) {
  const auto& x = a.data();
  const auto& y = b.data();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// Each element rounded to what the problem stores.
inline Inputs<float> stored(const Problem& problem, Inputs<float> inputs) {
  for (Tensor4<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (float& each : tensor->data()) each = stored_as(problem.storage, each);
  }
  return inputs;
}

/// Random numbers of the size `magnitude`, in the storage type.
inline Tensor4<float> random_tensor(const Problem& p, Tensor4<float> tensor, double magnitude,
                                    std::mt19937_64& engine) {
  for (float& each : tensor.data()) {
    constexpr double kHalf = 0x1p-53;
    const double unit = 2 * (static_cast<double>(engine() >> 11U) * kHalf) - 1;
    each = stored_as(p.storage, static_cast<float>(magnitude * unit));
  }
  return tensor;
}

/// Random inputs of the problem's shape.
inline Inputs<float> random_inputs(const Problem& p, double magnitude, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const Tensor4<float> keys(p.batch, p.kv_heads, p.kv_seq, p.head_dim);
  Inputs<float> inputs;
  inputs.q = random_tensor(p, Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim), magnitude, engine);
  inputs.k = random_tensor(p, keys, magnitude, engine);
  inputs.v = random_tensor(p, keys, magnitude, engine);
  return inputs;
}

/// A random dO.
inline Tensor4<float> random_gradient(const Problem& p, double magnitude, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  return random_tensor(p, Tensor4<float>(p.batch, p.heads, p.seq, p.head_dim), magnitude, engine);
}

inline std::string text_of(Kernel kernel, const Problem& problem, const Method& method) {
  return fmt::format("{} on {} in {}, {} parts{}", facts_of(kernel).name,
                     text_of(Shape{problem, method.tiling}), name_of(problem.storage), method.splits,
                     method.deterministic ? ", deterministic" : "");
}

inline std::string text_of(Kernel kernel, const Problem& problem) {
  return fmt::format("{} on {}", facts_of(kernel).name,
                     text_of(Shape{problem, method_of(kernel, problem).tiling}));
}

}  // namespace flashsim::test
