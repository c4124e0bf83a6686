// What a difference between a kernel and its model comes from. Each rule looks at figures that were read,
// speaks only where they bear it out, and names them.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"
#include "core/study/measure.hpp"
#include "core/study/measure_figures.hpp"

namespace flashsim {
namespace {

constexpr const char* kUnexplained = "not explained by anything that was read";

/// A figure that is off, and what is known beside it.
struct Off {
  const KernelReport& kernel;
  const MeasureHow& how;
  const Machine& machine;
  const ByteFigure& figure;

  [[nodiscard]] std::int64_t excess() const { return figure.seen->value() - figure.model->value(); }
  [[nodiscard]] bool is(ByteFigureKind kind) const { return figure.kind == kind; }
  [[nodiscard]] bool writes() const {
    return is(ByteFigureKind::sm_written) || is(ByteFigureKind::hbm_written);
  }
  [[nodiscard]] bool on_sms() const { return is(ByteFigureKind::sm_read) || is(ByteFigureKind::sm_written); }
  /// What a rest of that size would be of the model.
  [[nodiscard]] bool is_small(std::int64_t rest) const {
    return std::fabs(static_cast<double>(rest)) <=
           kWorthASentence * static_cast<double>(figure.model->value());
  }
};

std::string size_of_excess(std::int64_t bytes) { return size_text(Bytes(std::abs(bytes))); }

void say_spills(const Off& off, Difference& difference) {
  if (!off.on_sms() || off.excess() <= 0) return;
  for (const KernelResources& resources : off.kernel.measurement->kernels) {
    if (resources.local_memory_per_thread == Bytes()) continue;
    const Count threads = Count(resources.blocks) * resources.threads_per_block;
    const Bytes all = threads * resources.local_memory_per_thread;
    difference.sentences.push_back(fmt::format(
        "kernel {} has {} of local memory a thread (spilled registers, or an array that is indexed), {} "
        "over its {} threads; the excess is {}",
        resources.name, size_text(resources.local_memory_per_thread), size_text(all),
        grouped(threads.value()), size_of_excess(off.excess())));
    difference.explained = true;
  }
}

void say_lse(const Off& off, Difference& difference) {
  const Bytes lse = lse_beside(off.kernel.account);
  if (!off.writes() || lse == Bytes() || off.excess() <= 0) return;
  const std::int64_t rest = off.excess() - lse.value();
  if (!off.is_small(rest) || 2 * lse.value() < off.excess()) return;
  difference.sentences.push_back(fmt::format(
      "the kernel writes L as well, {}, which the account of {} doesn't have; the excess is {}",
      size_text(lse), facts_of(off.kernel.account.method.algorithm).name, size_of_excess(off.excess())));
  difference.explained = true;
}

/// A store of part of a sector brings all of it across.
void say_sectors(const Off& off, Difference& difference) {
  constexpr std::int64_t kSectorBytes = 32;
  if (!off.is(ByteFigureKind::sm_written) || off.excess() <= 0 || difference.explained) return;
  const AccountReport& account = off.kernel.account;
  const std::int64_t row_bytes = size_of(account.problem.accumulation());
  const Bytes stored = account.tally().sm_of(Operand::L).written +
                       account.tally().sm_of(Operand::L_part).written + lse_beside(account);
  const std::int64_t rows = stored.value() / row_bytes;
  const Bytes most(rows * (kSectorBytes - row_bytes));
  if (off.excess() > most.value()) return;
  difference.sentences.push_back(fmt::format(
      "L is {} B a row, and a sector of {} B crosses whole wherever part of it is stored: up to {} more for "
      "{} rows; the excess is {}",
      row_bytes, kSectorBytes, size_text(most), grouped(rows), size_of_excess(off.excess())));
  difference.explained = true;
}

void say_library_tiles(const Off& off, Difference& difference) {
  const bool reads = off.is(ByteFigureKind::sm_read) || off.is(ByteFigureKind::hbm_read);
  if (off.kernel.kernel != Kernel::standard_cublas || !reads) return;
  difference.sentences.push_back(
      fmt::format("cuBLAS chooses its own tiles and doesn't tell them; the model has its products on {}, and "
                  "what a product reads again follows from its tiles",
                  tiling_text(off.kernel.account.method.tiling)));
  difference.explained = true;
}

void say_warm(const Off& off, Difference& difference) {
  if (off.how.cache != CacheState::warm) return;
  const std::int64_t l2 = off.machine.l2.value();
  if (off.is(ByteFigureKind::hbm_read) && off.excess() < 0 && -off.excess() <= l2) {
    difference.sentences.push_back(
        fmt::format("the cache was warm, and the model starts with an empty one: {} that a run before left "
                    "in the L2 of {} were hit",
                    size_of_excess(off.excess()), size_text(off.machine.l2)));
    difference.explained = true;
  }
  if (off.is(ByteFigureKind::hbm_written) && off.excess() > 0 && off.excess() <= l2) {
    difference.sentences.push_back(
        fmt::format("the cache was warm, and the model starts with an empty one: {} more were written, and "
                    "the L2 of {} may have held as much unwritten from the run before",
                    size_of_excess(off.excess()), size_text(off.machine.l2)));
    difference.explained = true;
  }
}

void say_waiting(const Off& off, Difference& difference) {
  if (!off.is(ByteFigureKind::hbm_written) || off.excess() >= 0) return;
  const ByteFigure& stored = off.kernel.figure(ByteFigureKind::sm_written);
  const Bytes all = stored.seen.value_or(*stored.model);
  const std::int64_t waiting = all.value() - off.figure.seen->value();
  if (waiting <= 0 || waiting > off.machine.l2.value()) return;
  difference.sentences.push_back(fmt::format(
      "{} of the {} that were stored ({}) hadn't reached HBM when the kernels ended: they fit the L2 of {}",
      size_of_excess(waiting), size_text(all), stored.seen ? "counted" : "by the model",
      size_text(off.machine.l2)));
  difference.explained = true;
}

/// The other way round: the model leaves in the L2 what was written back before the end.
void say_written_back(const Off& off, Difference& difference) {
  if (!off.is(ByteFigureKind::hbm_written) || off.excess() <= 0) return;
  const Bytes waiting = off.kernel.account.simulation->after_l2.waiting;
  if (Bytes(off.excess()) > waiting) return;
  difference.sentences.push_back(
      fmt::format("{} more had reached HBM when the kernels ended; the model leaves {} of what was stored in "
                  "the L2 of {}",
                  size_of_excess(off.excess()), size_text(waiting), size_text(off.machine.l2)));
  difference.explained = true;
}

/// HBM sees what the SMs ask for: more or less of it there is more or less of it here.
void say_follows(const Off& off, Difference& difference) {
  if (off.on_sms() || !(off.is(ByteFigureKind::hbm_read) || off.is(ByteFigureKind::hbm_written))) return;
  const bool read = off.is(ByteFigureKind::hbm_read);
  const ByteFigure& asked = off.kernel.figure(read ? ByteFigureKind::sm_read : ByteFigureKind::sm_written);
  if (!asked.seen) return;
  const std::int64_t more = asked.seen->value() - asked.model->value();
  if ((more > 0) != (off.excess() > 0) || std::abs(more) < std::abs(off.excess())) return;
  difference.sentences.push_back(fmt::format("the SMs {} {} {} than the model has as well",
                                             read ? "read" : "wrote", size_of_excess(more),
                                             more > 0 ? "more" : "less"));
  difference.explained = true;
}

void say_workspace(const Off& off, Difference& difference) {
  const Bytes workspace = off.kernel.measurement->library_workspace;
  if (!off.is(ByteFigureKind::peak_memory) || workspace == Bytes() || off.excess() <= 0) return;
  const std::int64_t rest = off.excess() - workspace.value();
  if (rest == 0) {
    difference.sentences.push_back(fmt::format(
        "the excess is the {} that the library was given to work in, to the byte", size_text(workspace)));
  } else {
    difference.sentences.push_back(fmt::format("the library was given {} to work in, and the excess is {}",
                                               size_text(workspace), size_of_excess(off.excess())));
  }
  difference.explained = off.is_small(rest);
  if (!difference.explained) {
    difference.sentences.push_back(fmt::format("the rest, {}, is {}", size_of_excess(rest), kUnexplained));
  }
}

std::string percent(double share) {
  return fmt::format("{}{} %", share < 0 ? "−" : "+", three_digits(std::fabs(100 * share)));
}

std::string clock_text(double hz) { return three_digits(hz / 1e9) + " GHz"; }

/// The time of a kernel that is off.
struct OffTime {
  const KernelReport& kernel;
  const Machine& machine;
  const TimeFigure& time;

  [[nodiscard]] double excess() const { return time.median.value - time.model->value; }
  [[nodiscard]] const PredictedTime& predicted() const { return *kernel.account.simulation->time; }
};

void say_launches(const OffTime& off, Difference& difference) {
  std::int64_t launches = 0;
  for (const Occupancy& kernel : off.kernel.account.kernels) launches += kernel.launches.value();
  const double cost = off.machine.launch_seconds * static_cast<double>(launches);
  if (std::fabs(off.excess()) > cost) return;
  difference.sentences.push_back(
      fmt::format("the difference, {}, is within the {} that the machine file has for {} launch{}",
                  seconds_text({std::fabs(off.excess())}), seconds_text({cost}), grouped(launches),
                  launches == 1 ? "" : "es"));
  difference.explained = true;
}

void say_no_tensor_units(const OffTime& off, Difference& difference) {
  const auto instructions = off.kernel.counter("tensor_instructions");
  const auto& resources = off.predicted().resources;
  const auto tensor = std::find_if(resources.begin(), resources.end(),
                                   [](const ResourceTime& each) { return each.resource == "tensor"; });
  if (instructions != 0 || tensor == resources.end() || off.excess() <= 0) return;
  std::string otherwise;
  if (off.machine.flops_per_second.fp32) {
    const Seconds products =
        off.kernel.account.tally().work.products / FlopsPerSecond{*off.machine.flops_per_second.fp32};
    otherwise =
        fmt::format("; at the machine's fp32 rate the products alone take {}", seconds_text(products));
    difference.explained = products.value <= off.time.median.value;
  }
  difference.sentences.push_back(fmt::format(
      "no tensor instruction was counted, and the model has the products on tensor units{}", otherwise));
}

void say_clock(const OffTime& off, Difference& difference) {
  const auto clock = off.kernel.sm_clock_hz();
  const std::string& bound = off.predicted().bound;
  if (!clock || *clock <= 0 || bound == "hbm" || bound == "launch") return;
  const double there = off.machine.clock_hz;
  const bool fits = off.excess() > 0 ? *clock < there : *clock > there;
  if (!fits || std::fabs(*clock / there - 1) < 0.01) return;
  const double scaled = off.time.median.value * *clock / there;
  const double left = share_off(scaled, off.time.model->value);
  difference.sentences.push_back(
      fmt::format("the SMs ran at {}, and the machine file says {}: at that clock it would be {}, {} off",
                  clock_text(*clock), clock_text(there), seconds_text({scaled}), percent(left)));
  difference.explained = difference.explained || std::fabs(left) <= kWorthASentence;
}

void say_blocks_per_sm(const OffTime& off, Difference& difference) {
  for (const Occupancy& predicted : off.kernel.account.kernels) {
    for (const KernelResources& told : off.kernel.measurement->kernels) {
      if (told.name != predicted.kernel || told.blocks_per_sm == predicted.blocks_per_sm) continue;
      if ((told.blocks_per_sm < predicted.blocks_per_sm) != (off.excess() > 0)) continue;
      difference.sentences.push_back(
          fmt::format("of kernel {} {} block{} an SM {}, by the driver, and the model has {}", told.name,
                      told.blocks_per_sm, told.blocks_per_sm == 1 ? "" : "s",
                      told.blocks_per_sm == 1 ? "fits" : "fit", predicted.blocks_per_sm));
    }
  }
}

void say_memory_binds(const OffTime& off, Difference& difference) {
  if (off.predicted().bound != "hbm") return;
  const ByteFigure& read = off.kernel.figure(ByteFigureKind::hbm_read);
  const ByteFigure& written = off.kernel.figure(ByteFigureKind::hbm_written);
  if (!read.seen || !written.seen || !read.model || !written.model) return;
  const Bytes model = *read.model + *written.model;
  const Bytes seen = *read.seen + *written.seen;
  const double share = ratio(seen, model) - 1;
  const double time = *off.time.difference();
  if ((share > 0) != (time > 0) || std::fabs(share) < kWorthASentence) return;
  difference.sentences.push_back(
      fmt::format("HBM binds in the model, and its traffic is itself {} off: {} and not {}", percent(share),
                  size_text(seen), size_text(model)));
  difference.explained = difference.explained || std::fabs(time - share) <= kWorthASentence;
}

std::optional<Difference> bytes_off(const KernelReport& kernel, const MeasureHow& how, const Machine& machine,
                                    const ByteFigure& figure) {
  const auto share = figure.difference();
  if (!share || std::fabs(*share) <= kWorthASentence) return std::nullopt;
  const Off off{kernel, how, machine, figure};
  Difference difference{.figure = std::string(figure.name()), .share = *share};
  for (const auto rule : {say_spills, say_lse, say_sectors, say_library_tiles, say_warm, say_waiting,
                          say_written_back, say_follows, say_workspace}) {
    rule(off, difference);
  }
  if (difference.sentences.empty()) difference.sentences.emplace_back(kUnexplained);
  return difference;
}

std::optional<Difference> time_off(const KernelReport& kernel, const Machine& machine) {
  const auto share = kernel.time->difference();
  if (!share || std::fabs(*share) <= kWorthASentence) return std::nullopt;
  const OffTime off{kernel, machine, *kernel.time};
  Difference difference{.figure = "seconds", .share = *share};
  for (const auto rule :
       {say_launches, say_no_tensor_units, say_clock, say_blocks_per_sm, say_memory_binds}) {
    rule(off, difference);
  }
  if (difference.sentences.empty()) {
    difference.sentences.emplace_back(kUnexplained);
  } else if (!difference.explained) {
    difference.sentences.push_back(fmt::format("the rest is {}", kUnexplained));
  }
  return difference;
}

}  // namespace

std::vector<Difference> differences_of(const KernelReport& kernel, const MeasureHow& how,
                                       const Machine& machine) {
  std::vector<Difference> differences;
  for (const ByteFigure& figure : kernel.bytes) {
    // The papers' figure has no cache and isn't what HBM is expected to see.
    if (figure.kind == ByteFigureKind::papers_hbm) continue;
    if (auto off = bytes_off(kernel, how, machine, figure)) differences.push_back(*std::move(off));
  }
  if (kernel.time) {
    if (auto off = time_off(kernel, machine)) differences.push_back(*std::move(off));
  }
  return differences;
}

}  // namespace flashsim
