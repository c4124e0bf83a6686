// Which kernels of the ladder a measurement or a run asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim {

/// One kernel, or every one that takes the problem.
struct KernelChoice {
  std::optional<Kernel> one;  ///< absent: all
  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

/// "all", or a kernel as kernel_named() knows it. Errors: an unknown name.
Result<KernelChoice> kernel_choice_named(const std::string& name);

/// The kernel that is named, or the first one of the algorithm; flash2's where neither is told. Errors: a
/// kernel that realises another algorithm, an algorithm that no kernel realises.
Result<Kernel> choose_kernel(std::optional<Kernel> named, std::optional<Algorithm> algorithm);

/// Every kernel, or those of one algorithm, in the ladder's order. Errors: an algorithm that no kernel
/// realises.
Result<std::vector<Kernel>> kernels_of(std::optional<Algorithm> algorithm);

/// Errors: a tile size that isn't the one the kernel works on.
Outcome check_kernel_tiles(Kernel kernel, const Problem& problem, const TilingRequest& tiles);

}  // namespace flashsim
