#include "core/account/tally.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace flashsim {

Flow Tally::hbm_total() const {
  Flow total;
  for (const Operand operand : kOperands) {
    total += hbm_of(operand);
    total += initial_of(operand);
  }
  return total;
}

Flow Tally::sm_total() const {
  Flow total;
  for (const Operand operand : kOperands) total += sm_of(operand);
  return total;
}

Flow Tally::sram_total() const {
  Flow total;
  for (const Operation operation : kOperations) total += sram_of(operation);
  return total;
}

std::vector<Figure> figures_of(const Tally& tally) {
  std::vector<Figure> figures;
  const auto add = [&](const std::string& name, Flow flow) {
    figures.push_back({name + ".read_bytes", flow.read.count});
    figures.push_back({name + ".write_bytes", flow.written.count});
  };
  for (const Operand operand : kOperands) {
    add(fmt::format("hbm.{}", name_of(operand)), tally.hbm_of(operand));
    add(fmt::format("hbm.{} initial", name_of(operand)), tally.initial_of(operand));
    add(fmt::format("sm.{}", name_of(operand)), tally.sm_of(operand));
  }
  for (const Operation operation : kOperations) {
    add(fmt::format("sram.{}", name_of(operation)), tally.sram_of(operation));
  }
  add("hbm.total", tally.hbm_total());
  add("sm.total", tally.sm_total());
  add("sram.total", tally.sram_total());
  const Work& work = tally.work;
  figures.push_back({"flops.executed", work.products.count});
  figures.push_back({"flops.scale", work.scale.count});
  figures.push_back({"flops.mask", work.mask.count});
  figures.push_back({"flops.softmax", work.softmax.count});
  figures.push_back({"flops.rescale", work.rescale.count});
  figures.push_back({"flops.normalise", work.normalise.count});
  figures.push_back({"flops.exponentials", work.exponentials});
  figures.push_back({"peak_allocated_bytes", tally.peak_allocated.count});
  // A kernel that is launched again is another figure.
  std::map<std::string, int> launches;
  for (const KernelLaunch& kernel : tally.kernels) {
    const int nth = ++launches[kernel.name];
    const std::string name = nth == 1 ? kernel.name : fmt::format("{} {}", kernel.name, nth);
    figures.push_back({fmt::format("launch.{}.blocks", name), kernel.blocks});
    if (kernel.launches != Count(1)) {
      figures.push_back({fmt::format("launch.{}.launches", name), kernel.launches});
    }
  }
  figures.push_back({"steps", tally.steps});
  return figures;
}

bool Tally::overflowed() const {
  const auto flow_left = [](const Flow& flow) { return flow.read.overflowed() || flow.written.overflowed(); };
  const auto some_left = [&](const auto& flows) {
    return std::any_of(flows.begin(), flows.end(), flow_left);
  };
  const auto launch_left = [](const KernelLaunch& kernel) { return kernel.blocks.overflowed(); };
  return some_left(hbm) || some_left(initial) || some_left(sm) || some_left(sram) ||
         some_left(std::array{hbm_total(), sm_total(), sram_total()}) || work.products.overflowed() ||
         work.scale.overflowed() || work.mask.overflowed() || work.softmax.overflowed() ||
         work.rescale.overflowed() || work.normalise.overflowed() || work.exponentials.overflowed() ||
         peak_allocated.overflowed() || steps.overflowed() ||
         std::any_of(kernels.begin(), kernels.end(), launch_left);
}

}  // namespace flashsim
