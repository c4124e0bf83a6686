#include "core/study/kernel_choice.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flashsim {
namespace {

Error no_kernel_of(Algorithm algorithm, Pass pass) {
  std::vector<std::string_view> known;
  for (const KernelFacts& facts : kKernels) {
    const std::string_view name = facts_of(facts.algorithm).name;
    if (facts.pass == pass && std::count(known.begin(), known.end(), name) == 0) known.push_back(name);
  }
  const char* backward = pass == Pass::backward ? " backward" : "";
  return {fmt::format("no kernel realises {}{}", facts_of(algorithm).name, backward),
          fmt::format("there are kernels of {}{} (flashsim list kernels)", fmt::join(known, ", "), backward)};
}

/// What the kernel that is named isn't.
Outcome check_wish(const KernelFacts& facts, const KernelWish& wish) {
  if (wish.algorithm && *wish.algorithm != facts.algorithm) {
    return Error{fmt::format("{} realises {}, and --algo is {}", facts.name, facts_of(facts.algorithm).name,
                             facts_of(*wish.algorithm).name),
                 "leave --algo out"};
  }
  if (wish.pass && *wish.pass != facts.pass) {
    return Error{
        fmt::format("{} goes {}, and --pass is {}", facts.name, name_of(facts.pass), name_of(*wish.pass)),
        "leave --pass out"};
  }
  return std::nullopt;
}

bool takes(Kernel kernel, NumberType storage) {
  const auto types = facts_of(kernel).storage;
  return std::count(types.begin(), types.end(), storage) > 0;
}

}  // namespace

Result<KernelChoice> kernel_choice_named(const std::string& name) {
  if (name == "all") return KernelChoice{};
  const auto kernel = kernel_named(name);
  if (!kernel) return kernel.error();
  return KernelChoice{*kernel};
}

Result<std::vector<Kernel>> kernels_of(const KernelWish& wish) {
  const Pass pass = wish.pass.value_or(Pass::forward);
  if (pass == Pass::both) {
    return Error{"--pass is both, and a kernel makes one of them", "--pass forward or --pass backward"};
  }
  std::vector<Kernel> kernels;
  for (const KernelFacts& facts : kKernels) {
    if (facts.pass == pass && facts.algorithm == wish.algorithm.value_or(facts.algorithm)) {
      kernels.push_back(facts.kernel);
    }
  }
  if (kernels.empty()) return no_kernel_of(*wish.algorithm, pass);
  return kernels;
}

Result<Kernel> choose_kernel(std::optional<Kernel> named, const KernelWish& wish) {
  if (named) {
    if (auto error = check_wish(facts_of(*named), wish)) return *error;
    return *named;
  }
  KernelWish usual = wish;
  usual.algorithm = wish.algorithm.value_or(Algorithm::flash2);
  const auto kernels = kernels_of(usual);
  if (!kernels) return kernels.error();
  for (const Kernel kernel : *kernels) {
    if (wish.storage && takes(kernel, *wish.storage)) return kernel;
  }
  return kernels->front();
}

Outcome check_kernel_tiles(Kernel kernel, const Problem& problem, const TilingRequest& tiles) {
  const Tiling own = method_of(kernel, problem).tiling;
  const auto check = [&](const char* option, const std::optional<std::int64_t>& asked,
                         std::int64_t of_kernel) -> Outcome {
    if (!asked || *asked == of_kernel) return std::nullopt;
    return Error{fmt::format("{} is {}, and {} works on tiles of {}", option, *asked, facts_of(kernel).name,
                             tiling_text(own)),
                 fmt::format("leave {} out", option)};
  };
  if (auto error = check("--tile-q", tiles.query_rows, own.query_rows)) return error;
  return check("--tile-k", tiles.key_rows, own.key_rows);
}

}  // namespace flashsim
