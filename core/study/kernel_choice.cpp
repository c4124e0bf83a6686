#include "core/study/kernel_choice.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flashsim {
namespace {

Error no_kernel_of(Algorithm algorithm) {
  std::vector<std::string_view> known;
  for (const KernelFacts& facts : kKernels) {
    const std::string_view name = facts_of(facts.algorithm).name;
    if (std::count(known.begin(), known.end(), name) == 0) known.push_back(name);
  }
  return {fmt::format("no kernel realises {}", facts_of(algorithm).name),
          fmt::format("there are kernels of {} (flashsim list kernels)", fmt::join(known, ", "))};
}

}  // namespace

Result<KernelChoice> kernel_choice_named(const std::string& name) {
  if (name == "all") return KernelChoice{};
  const auto kernel = kernel_named(name);
  if (!kernel) return kernel.error();
  return KernelChoice{*kernel};
}

Result<std::vector<Kernel>> kernels_of(std::optional<Algorithm> algorithm) {
  std::vector<Kernel> kernels;
  for (const KernelFacts& facts : kKernels) {
    if (!algorithm || facts.algorithm == *algorithm) kernels.push_back(facts.kernel);
  }
  if (kernels.empty()) return no_kernel_of(*algorithm);
  return kernels;
}

Result<Kernel> choose_kernel(std::optional<Kernel> named, std::optional<Algorithm> algorithm) {
  if (named) {
    const KernelFacts& facts = facts_of(*named);
    if (!algorithm || *algorithm == facts.algorithm) return *named;
    return Error{fmt::format("{} realises {}, and --algo is {}", facts.name, facts_of(facts.algorithm).name,
                             facts_of(*algorithm).name),
                 "leave --algo out"};
  }
  const auto kernels = kernels_of(algorithm.value_or(Algorithm::flash2));
  if (!kernels) return kernels.error();
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
