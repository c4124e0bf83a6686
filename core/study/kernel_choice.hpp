// Which kernels of the ladder a measurement or a run asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/method.hpp"
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

/// What one asks of a kernel beside its name; what is absent follows from the kernel.
struct KernelWish {
  std::optional<Algorithm> algorithm;
  std::optional<Pass> pass;
  std::optional<NumberType> storage;
};

/// The kernel that is named, or the first one of the algorithm and the pass that takes the storage type:
/// flash2 and forward where they aren't told. Where no kernel takes the type it is the first one. Errors: a
/// kernel that realises another algorithm or makes another pass, an algorithm that no kernel realises.
Result<Kernel> choose_kernel(std::optional<Kernel> named, const KernelWish& wish);

/// Every kernel of the pass (forward where none is told), or those of one algorithm, in the ladder's order.
/// Errors: an algorithm that no kernel realises, both passes at once.
Result<std::vector<Kernel>> kernels_of(const KernelWish& wish);

/// Errors: a tile size that isn't the one the kernel works on.
Outcome check_kernel_tiles(Kernel kernel, const Problem& problem, const TilingRequest& tiles);

}  // namespace flashsim
