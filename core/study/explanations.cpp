// The formulas behind --explain: the closed form's own, and those of what is made of its figures.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/study/account.hpp"

namespace flashsim {
namespace {

/// A sum of named sizes: "O + L" and "67108864 + 1048576".
class Sum {
 public:
  void add(const std::string& name, Bytes size) {
    names_.push_back(name);
    numbers_.push_back(fmt::format("{}", size.value()));
  }
  [[nodiscard]] ExplainedFigure as(const std::string& figure, Bytes total) const {
    return {figure, fmt::format("{}", fmt::join(names_, " + ")),
            fmt::format("{}", fmt::join(numbers_, " + ")), total.value()};
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> numbers_;
};

ExplainedFigure peak(const std::string& figure, const std::vector<Alive>& alive) {
  Sum sum;
  for (const Alive& tensor : alive) {
    sum.add(std::string(name_of(tensor.operand)), tensor.size);
  }
  return sum.as(figure, total_size(alive));
}

void add_totals(const AccountReport& r, std::vector<ExplainedFigure>& figures) {
  Sum hbm;
  for (const TensorLine& line : tensor_lines(r.tally(), r.problem)) hbm.add(line.name, line.flow.total());
  figures.push_back(hbm.as("hbm.total_bytes", r.hbm_bytes()));
  Sum sm;
  for (const Operand operand : kOperands) {
    const Bytes moved = r.tally().sm_of(operand).total();
    if (moved != Bytes()) sm.add(std::string(name_of(operand)), moved);
  }
  figures.push_back(sm.as("sm.total_bytes", r.tally().sm_total().total()));
  Sum sram;
  for (const Operation operation : kOperations) {
    const Bytes moved = r.tally().sram_of(operation).total();
    if (moved != Bytes()) sram.add(std::string(name_of(operation)), moved);
  }
  figures.push_back(sram.as("sram.total_bytes", r.tally().sram_total().total()));
}

/// The tile pairs that the sums of the tiled algorithms run over.
void add_visited(const AccountReport& r, std::vector<ExplainedFigure>& figures) {
  if (!facts_of(r.method.algorithm).tiled) return;
  const TilePairs& pairs = r.prediction.tile_pairs;
  figures.push_back({"tiles.visited_pairs", "Σ1 of Tr·Tc",
                     fmt::format("{} of {} · {}", pairs.visited.value(), pairs.query_tiles.value(),
                                 pairs.key_tiles.value()),
                     pairs.visited.value()});
}

/// How many parts the keys are split into, and how much a pattern keeps.
void add_choices(const AccountReport& r, std::vector<ExplainedFigure>& figures) {
  if (r.splits) {
    const SplitChoice& s = *r.splits;
    const std::string numbers =
        fmt::format("blocks {}, SMs {}, Tc {}: {:.3f}, of {:.3f} at best up to S = {}", s.blocks.value(),
                    s.sms, s.key_tiles, s.efficiency(), s.best, s.most);
    std::string rule = "as asked for, w/⌈w⌉ with w = blocks·S / SMs";
    if (s.automatic && s.filled()) rule = "1 where blocks ≥ 0.8·SMs; w/⌈w⌉ with w = blocks·S / SMs";
    if (s.automatic && !s.filled()) {
      rule = "least S ≤ min(128, SMs, Tc) with w/⌈w⌉ ≥ 0.85 · best, w = blocks·S / SMs";
    }
    figures.push_back({"tiles.splits", rule, numbers, s.splits});
  }
  if (r.prediction.pattern) {
    const KeptBlocks& kept = *r.prediction.pattern;
    figures.push_back({"tiles.kept_fraction", "blocks that are there / Tr·Tc",
                       fmt::format("{} / {}", kept.kept.value(), kept.blocks.value()), kept.fraction()});
  }
}

void add_memory(const AccountReport& r, std::vector<ExplainedFigure>& figures) {
  figures.push_back(peak("memory.peak_intermediate_bytes", r.prediction.intermediate));
  figures.push_back(peak("memory.peak_allocated_bytes", r.prediction.allocated));
  if (r.method.pass != Pass::forward) {
    figures.push_back(peak("memory.saved_for_backward_bytes", r.saved_for_backward));
  }
  Sum needed;
  for (const Alive& input : inputs_of(r.problem, r.method)) {
    needed.add(std::string(name_of(input.operand)), input.size);
  }
  needed.add("peak allocated", r.tally().peak_allocated);
  figures.push_back(needed.as("memory.needed_bytes", r.memory_needed()));
}

void add_ratios(const AccountReport& r, std::vector<ExplainedFigure>& figures) {
  figures.push_back({"flops.intensity", "exact / HBM total",
                     fmt::format("{} / {}", r.flops.exact.value().value(), r.hbm_bytes().value()),
                     r.intensity().value});
  for (const Occupancy& kernel : r.kernels) {
    figures.push_back(
        {fmt::format("launch.{}.waves", kernel.kernel), "blocks / (SMs · blocks an SM)",
         fmt::format("{} / ({} · {})", kernel.blocks.value(), r.machine.sms, kernel.blocks_per_sm),
         kernel.waves});
  }
  if (!r.standard) return;
  figures.push_back({"standard.traffic_ratio", "standard's HBM total / HBM total",
                     fmt::format("{} / {}", r.standard->hbm.value(), r.hbm_bytes().value()),
                     ratio(r.standard->hbm, r.hbm_bytes())});
}

/// The place of a figure's group in the printed order.
std::size_t group_of(const std::string& figure) {
  constexpr std::array<std::string_view, 8> kGroups{"tiles.",  "hbm.",   "sm.",     "sram.",
                                                    "memory.", "flops.", "launch.", "standard."};
  for (std::size_t i = 0; i < kGroups.size(); ++i) {
    if (figure.starts_with(kGroups[i])) return i;
  }
  return kGroups.size();
}

}  // namespace

std::vector<ExplainedFigure> explanations_of(const AccountReport& report) {
  std::vector<ExplainedFigure> figures;
  for (const Explanation& e : report.prediction.explanations) {
    figures.push_back({e.figure, e.symbols, e.numbers, e.value.value()});
  }
  for (const auto& [name, formula] :
       {std::pair{"flops.paper", &report.flops.paper}, {"flops.exact", &report.flops.exact}}) {
    figures.push_back({name, formula->symbols(), formula->numbers(), formula->value().value()});
  }
  add_visited(report, figures);
  add_choices(report, figures);
  add_totals(report, figures);
  add_memory(report, figures);
  add_ratios(report, figures);
  std::stable_sort(figures.begin(), figures.end(), [](const ExplainedFigure& a, const ExplainedFigure& b) {
    return group_of(a.figure) < group_of(b.figure);
  });
  return figures;
}

}  // namespace flashsim
