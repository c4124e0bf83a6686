#include "core/account/clock.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// Of a datasheet's tensor rate this share is reached at the clock that the chip holds: what is left of the
/// matrix units' time in the best kernels (docs/machine-model.md). Measured rates have it in them.
constexpr double kTensorShare = 0.86;
/// kUnhidden of arithmetic and loads from shared memory where warps that share the rows of a tile wait for
/// each other's part of it.
constexpr double kUnhiddenParts = 0.6;
/// Warps that fill an SM's four schedulers with products of fragments, and how much longer fewer take alone.
constexpr std::int64_t kFillingWarps = 8;
constexpr double kTooFewWarps = 1.25;

std::optional<double> rate_of(const Machine& machine, NumberType type) {
  const Machine::Rates& rates = machine.flops_per_second;
  switch (type) {
    case NumberType::fp8: return rates.fp8;
    case NumberType::fp16: return rates.fp16;
    case NumberType::bf16: return rates.bf16;
    case NumberType::fp32: return rates.fp32;
    case NumberType::fp64: return rates.fp64;
  }
  return std::nullopt;
}

/// Products of fragments have a rate of their own where a warpgroup's products are faster.
std::optional<double> fragment_rate_of(const Machine& machine, NumberType type) {
  const Machine::FragmentRates& rates = machine.fragment_flops_per_second;
  if (type == NumberType::fp16) return rates.fp16;
  if (type == NumberType::bf16) return rates.bf16;
  return std::nullopt;
}

}  // namespace

double overlapping(double a, double b, double unhidden) { return std::max(a, b) + unhidden * std::min(a, b); }

Demand demand_of(const Work& work, double shared_bytes) {
  const auto number = [](auto amount) { return static_cast<double>(amount.value()); };
  const double exponentials = number(work.exponentials);
  return {.products = number(work.products),
          .pointwise = number(work.scale) + number(work.mask) + number(work.softmax) + number(work.rescale) +
                       number(work.normalise) + exponentials,
          .exponentials = exponentials,
          .shared_bytes = shared_bytes};
}

Result<Clock> Clock::of(const Machine& machine, const Problem& problem, const Habits& habits) {
  // What isn't float64 is multiplied in float32 on the FMA units.
  const NumberType products =
      habits.lanes && problem.storage != NumberType::fp64 ? NumberType::fp32 : problem.storage;
  const auto rate = rate_of(machine, products);
  const auto fp32 = machine.flops_per_second.fp32;
  if (!rate || !fp32) {
    return Error{fmt::format("no {} rate of the {} is known, so no time can be told",
                             name_of(rate ? NumberType::fp32 : products), machine.title),
                 "choose another --dtype, or give a machine file that has the rate"};
  }
  if (!machine.exponentials_per_sm_per_clock) {
    return Error{
        fmt::format("the rate of exponentials of the {} isn't known, so no time can be told", machine.title),
        "give a machine file that has exponentials_per_sm_per_clock"};
  }
  const auto sms = static_cast<double>(machine.sms);
  Clock clock;
  clock.tensor_ = products != NumberType::fp32 && products != NumberType::fp64;
  clock.lanes_ = habits.lanes.has_value();
  clock.fragments_ = habits.fragments.has_value();
  clock.unhidden_loads_ = habits.fragments && habits.fragments->warp_keys ? kUnhiddenParts : kUnhidden;
  if (habits.fragments && habits.fragments->warps < kFillingWarps) clock.too_few_warps_ = kTooFewWarps;
  clock.overlap_ = habits.overlap;
  clock.peak_ = *rate;
  const bool measured = machine.rates == "measured";
  clock.products_ = *rate / sms * (clock.tensor_ && !measured ? kTensorShare : 1.0);
  if (const auto by_fragments = fragment_rate_of(machine, products); clock.fragments_ && by_fragments) {
    clock.products_ = *by_fragments / sms;
  }
  // A fused multiply-add is two FLOPs, another operation one.
  clock.pointwise_ = *fp32 / 2 / sms;
  clock.exponentials_ = *machine.exponentials_per_sm_per_clock * machine.clock_hz;
  clock.shared_ = machine.shared_memory_bytes_per_sm_per_clock * machine.clock_hz;
  return clock;
}

UnitTimes Clock::on_one_sm(const Demand& demand) const {
  const double products = demand.products / products_;
  const double pointwise = demand.pointwise / pointwise_;
  return {.tensor = tensor_ ? products : 0,
          .fma = pointwise + (tensor_ ? 0 : products),
          .exponential = demand.exponentials / exponentials_,
          .sram = demand.shared_bytes / shared_};
}

double Clock::alone(const Demand& demand) const {
  const UnitTimes t = on_one_sm(demand);
  // Exponentials wait for the maximum, and the sum for them: the two units of softmax take turns.
  const double products = demand.products / products_;
  const double softmax = demand.pointwise / pointwise_ + t.exponential;
  // FMAs wait for their operands: few warps fit an SM with so much in registers, and one's loads hide little
  // under another's arithmetic.
  if (lanes_) return products + softmax + t.sram;
  // A warp waits for the fragments that it multiplies, and goes on to softmax when they are done: the others
  // of its SM are as far as it is. Loads of the next fragments are under way meanwhile.
  if (fragments_) return too_few_warps_ * busiest(demand);
  const double arithmetic = overlap_ == Overlap::serial || !tensor_
                                ? products + softmax
                                : overlapping(products, softmax, kUnhidden);
  return std::max(arithmetic, t.sram);
}

double Clock::busiest(const Demand& demand) const {
  const UnitTimes t = on_one_sm(demand);
  if (fragments_) {
    const double arithmetic = demand.products / products_ + demand.pointwise / pointwise_ + t.exponential;
    return overlapping(arithmetic, t.sram, unhidden_loads_);
  }
  return std::max({t.tensor, t.fma, t.exponential, t.sram});
}

}  // namespace flashsim
