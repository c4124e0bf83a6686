#include "core/study/tune.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/account/prediction.hpp"
#include "core/base/quantity_text.hpp"
#include "core/study/account.hpp"
#include "core/study/tile_search.hpp"

namespace flashsim {
namespace {

/// The most candidates that the curve is worth.
constexpr std::int64_t kMostCurveCandidates = 50'000;

/// The sizes of the curve: four to each doubling, from 1 KiB to 1 MiB, or on to where `sram` is inside.
std::vector<Bytes> curve_sizes(Bytes sram) {
  constexpr int kFirst = 10;
  constexpr int kLast = 20;
  constexpr int kMostLast = 50;
  constexpr int kEach = 4;
  int last = kLast;
  while (last < kMostLast && (std::int64_t{1} << last) < sram.value()) ++last;
  std::vector<Bytes> sizes;
  for (int step = 0; step <= (last - kFirst) * kEach; ++step) {
    sizes.emplace_back(std::llround(std::exp2(kFirst + static_cast<double>(step) / kEach)));
  }
  return sizes;
}

/// The last of the candidates on a front that fit; none where the first doesn't.
std::optional<Bytes> best_within(const std::vector<TileChoice>& front, Bytes sram) {
  const auto behind = std::upper_bound(front.begin(), front.end(), sram,
                                       [](Bytes size, const TileChoice& t) { return size < t.footprint; });
  if (behind == front.begin()) return std::nullopt;
  return std::prev(behind)->hbm;
}

Error nothing_fits(const Problem& problem, Bytes sram, std::int64_t multiple_of) {
  const Tiling smallest{.query_rows = std::min(multiple_of, problem.seq),
                        .key_rows = std::min(multiple_of, problem.kv_seq)};
  std::int64_t smaller = multiple_of;
  while (smaller > 1 && !fits(problem, {smaller, smaller}, sram)) smaller /= 2;
  return {fmt::format("no tile of multiples of {} fits {} B: {} needs {} B", multiple_of, sram.value(),
                      tiling_text(smallest), tile_footprint(problem, smallest).value()),
          fmt::format("--multiple-of {}", smaller)};
}

/// The largest size of the curve whose candidates aren't too many to try beside what was asked for, or
/// `sram`.
Bytes largest_searched(const TileSearch& search, Bytes sram, const std::vector<TunedSize>& curve) {
  for (std::size_t i = curve.size(); i > 0 && curve[i - 1].sram > sram; --i) {
    if (search.candidates(curve[i - 1].sram) <= kMostCurveCandidates) return curve[i - 1].sram;
  }
  return sram;
}

double leading_order_rows(Algorithm algorithm, const Problem& problem) {
  const auto d = static_cast<double>(problem.head_dim);
  return algorithm == Algorithm::flash1 ? (3 * d + 4) / 4 : d / 2;
}

}  // namespace

TheoryBound theory_bound(const Problem& problem, Bytes sram) {
  const std::int64_t elements = sram.value() / size_of(problem.storage);
  const auto m = static_cast<double>(elements);
  const auto d = static_cast<double>(problem.head_dim);
  const double heads = static_cast<double>(problem.batch) * static_cast<double>(problem.heads);
  const double pairs = static_cast<double>(problem.seq) * static_cast<double>(problem.kv_seq);
  const bool large = m >= d * d;
  const double order = large ? pairs * d * d / m : pairs * d / std::sqrt(m);
  return {.elements = elements,
          .large = large,
          .bytes = heads * order * static_cast<double>(size_of(problem.storage))};
}

Bytes compulsory_bytes(const Problem& problem) {
  return input_bytes(problem) + whole_size(Operand::O, problem) + whole_size(Operand::L, problem);
}

Result<TuneReport> make_tuning(const TuneRequest& request) {
  TuneReport report{.gpu = request.account.gpu.value_or("a100"),
                    .multiple_of = request.multiple_of.value_or(kUsualMultiple)};
  const auto problem = resolve_problem(request.account);
  if (!problem) return problem.error();
  report.problem = *problem;
  auto machine = find_machine(report.gpu);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();
  report.sram = request.account.shared_memory.value_or(report.machine.shared_memory_per_block);
  report.compulsory = compulsory_bytes(report.problem);
  report.standard =
      predict_unexplained(report.problem, {.algorithm = Algorithm::standard}).tally.hbm_total().total();
  if (report.compulsory.overflowed()) return leaves_64_bits(Algorithm::flash2, report.problem);
  if (report.standard.overflowed()) return leaves_64_bits(Algorithm::standard, report.problem);

  report.theory = theory_bound(report.problem, report.sram);
  for (const Bytes size : curve_sizes(report.sram))
    report.curve.push_back({size, theory_bound(report.problem, size), {}});

  for (const Algorithm algorithm : kTunedOrders) {
    const auto chosen = resolve_tiling(algorithm, report.problem, {}, report.sram, "the SRAM");
    if (!chosen) return chosen.error();
    const TileSearch search(algorithm, report.problem, report.multiple_of);
    OrderTuning order{.algorithm = algorithm, .candidates = search.candidates(report.sram)};
    if (order.candidates == 0) return nothing_fits(report.problem, report.sram, report.multiple_of);
    if (order.candidates > kMostCandidates) {
      return Error{fmt::format("more than {} tiles of multiples of {} fit {} B", grouped(kMostCandidates),
                               report.multiple_of, report.sram.value()),
                   fmt::format("--multiple-of {}", 4 * report.multiple_of)};
    }
    const Bytes searched = largest_searched(search, report.sram, report.curve);
    const std::vector<TileChoice> wide = search.front(searched);
    for (TunedSize& size : report.curve) {
      size.best.push_back(size.sram <= searched ? best_within(wide, size.sram) : std::nullopt);
    }
    std::copy_if(wide.begin(), wide.end(), std::back_inserter(order.front),
                 [&](const TileChoice& tile) { return tile.footprint <= report.sram; });
    if (order.front.empty()) return leaves_64_bits(algorithm, report.problem);
    order.best = order.front.back();
    order.paper = search.choice(paper_tiling(report.problem, report.sram));
    order.chosen = search.choice(*chosen);
    if (order.paper.hbm.overflowed() || order.chosen.hbm.overflowed()) {
      return leaves_64_bits(algorithm, report.problem);
    }
    const std::int64_t largest = std::min(search.longest_outer(), kLargestTileTried);
    order.payoff = {.leading_order_rows = leading_order_rows(algorithm, report.problem),
                    .searched_rows = largest,
                    .smallest_tile = search.smallest_outer(*chosen, report.standard, largest),
                    .smallest_sram = search.smallest_footprint(report.standard)};
    report.orders.push_back(std::move(order));
  }
  return report;
}

}  // namespace flashsim
