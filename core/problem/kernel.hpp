// The kernels of the ladder (cuda/ladder), as far as they can be known without a GPU: which algorithm each
// one realises, what it takes, on which tiles it works and how it behaves on a machine.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/habits.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"

namespace flashsim {

enum class Kernel { standard, standard_cublas, flash_fp32, flash_tensor, flash_split_kv, flash_backward };

struct KernelFacts {
  Kernel kernel;
  std::string_view name;     ///< "03_flash_fp32": of its file, on the command line and in JSON
  std::string_view summary;  ///< one line for `list`
  Algorithm algorithm;
  std::span<const NumberType> storage;  ///< types that it takes
  std::int64_t largest_head_dim;
  bool counts_itself;   ///< there is a build of it that counts its own loads and stores
  bool breaks = false;  ///< there are builds of it with a part switched off or broken
  Pass pass = Pass::forward;
};

inline constexpr std::array kPlainKernelTypes{NumberType::fp16, NumberType::bf16, NumberType::fp32};
inline constexpr std::array kFlashFp32Types{NumberType::fp32};
inline constexpr std::array kTensorTypes{NumberType::fp16, NumberType::bf16};

inline constexpr std::array kKernels{
    KernelFacts{Kernel::standard, "01_standard",
                "three plain kernels: scores, softmax, output; S and P in HBM", Algorithm::standard,
                kPlainKernelTypes, 256, true},
    KernelFacts{Kernel::standard_cublas, "02_standard_cublas",
                "the products by cuBLAS, softmax our own: the honest baseline", Algorithm::standard,
                kPlainKernelTypes, 256, false},
    KernelFacts{Kernel::flash_fp32, "03_flash_fp32",
                "FlashAttention-2's tiles and online softmax in plain float32, with every break switch",
                Algorithm::flash2, kFlashFp32Types, 256, true, true},
    KernelFacts{Kernel::flash_tensor, "04_flash_tensor",
                "the same on tensor cores in fp16 and bf16, fed by ldmatrix from swizzled shared memory",
                Algorithm::flash2, kTensorTypes, 256, false, true},
    KernelFacts{Kernel::flash_split_kv, "05_flash_split_kv",
                "few queries over many keys: a group's heads in one tile, the keys split, the parts combined",
                Algorithm::split_kv, kTensorTypes, 256, false},
    KernelFacts{Kernel::flash_backward, "06_flash_backward",
                "dQ, dK and dV on tensor cores; S and P are computed again from Q, K and L",
                Algorithm::flash2, kTensorTypes, 128, false, false, Pass::backward},
};

constexpr const KernelFacts& facts_of(Kernel kernel) {
  for (const KernelFacts& facts : kKernels) {
    if (facts.kernel == kernel) return facts;
  }
  return kKernels[0];
}

/// The forward kernel whose O and L a kernel of the backward pass is given.
inline constexpr Kernel kSavesForBackward = Kernel::flash_tensor;

/// The kernel of that name: "03_flash_fp32", "flash_fp32" or "03". Errors: an unknown name, with the nearest.
Result<Kernel> kernel_named(std::string_view name);

/// Errors: a problem or switches that the kernel doesn't take, with the kernels of its pass that do.
Outcome check_kernel(Kernel kernel, const Problem& problem, const Switches& switches);

/// The algorithm and the tiles that the kernel works on, for a problem that it takes.
Method method_of(Kernel kernel, const Problem& problem);

/// How the kernel behaves on a machine.
Habits habits_of(Kernel kernel, const Problem& problem);

}  // namespace flashsim
