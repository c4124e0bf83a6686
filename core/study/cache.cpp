#include "core/study/cache.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace flashsim {
namespace {

Error cache_leaves_64_bits(const CacheReport& r) {
  return {fmt::format("a count of the KV cache leaves 64 bits ({} · layers {})", shape_text(r.prefill),
                      r.layout.layers),
          "make the problem smaller (--seq, --batch, --layers, --heads, --head-dim)"};
}

Result<CacheLayout> resolve_layout(const CacheRequest& request, const Problem& problem) {
  CacheLayout layout{.layers = request.layers.value_or(1),
                     .type = request.type.value_or(cache_type_of(problem.storage)),
                     .group = request.group.value_or(kDefaultCacheGroup)};
  const CacheTypeFacts& facts = facts_of(layout.type);
  if (request.group && !facts.quantized()) {
    return Error{
        fmt::format("groups of {} are for a quantized cache, and this one is {}", layout.group, facts.name),
        "choose --cache-dtype int8 or int4, or leave --cache-group out"};
  }
  for (const auto& [name, value] : {std::pair{"layers", layout.layers}, {"cache-group", layout.group}}) {
    if (const auto checked = check_dimension(name, value); !checked) return checked.error();
  }
  return layout;
}

/// Multi-head, what was asked for, and one key/value head: each once.
std::vector<CacheGrouping> groupings_of(const Problem& p, const CacheLayout& layout) {
  std::vector<CacheGrouping> groupings;
  const auto add = [&](const char* name, std::int64_t kv_heads, const Formula& symbol) {
    if (!groupings.empty() && groupings.back().kv_heads == kv_heads) return;
    groupings.push_back({.name = name,
                         .kv_heads = kv_heads,
                         .is_this = kv_heads == p.kv_heads,
                         .size = cache_size(p, layout, symbol)});
  };
  add("multi-head", p.heads, Formula(p.heads == p.kv_heads ? "Hkv" : "H", p.heads));
  add(p.kv_heads == 1 ? "one head" : "grouped", p.kv_heads, Formula("Hkv", p.kv_heads));
  add("one head", 1, Formula(1));
  return groupings;
}

/// `bytes` of a tensor with rows of d elements, were its rows the cache's.
Bytes in_cache_rows(Bytes bytes, const Problem& problem, const Formula& row) {
  const std::int64_t stored_row = problem.head_dim * size_of(problem.storage);
  return Bytes(Count(bytes.value() / stored_row) * row.value());
}

/// A decode step by the account's own prediction, with K and V in the cache's type. The bytes of one
/// query don't depend on the tiles: it is one query tile, which loads each visited key once.
std::optional<DecodeWay> predicted_way(Algorithm algorithm, const CacheReport& r) {
  const Problem& p = r.decode;
  const Prediction prediction = predict(algorithm, p, Tiling{});
  const Tally& tally = prediction.tally;
  if (tally.hbm_total().total().overflowed()) return std::nullopt;
  DecodeWay way{.name = std::string(facts_of(algorithm).name), .reads = p.heads / p.kv_heads};
  for (const Operand operand : kOperands) {
    const Bytes moved = tally.hbm_of(operand).total() + tally.initial_of(operand).total();
    if (operand == Operand::K || operand == Operand::V) {
      way.cache += in_cache_rows(moved, p, r.row);
    } else if (operand == Operand::S || operand == Operand::P) {
      way.scores += moved;
    } else {
      way.rest += moved;
    }
  }
  for (const Explanation& e : prediction.explanations) {
    const bool of_cache = e.figure.starts_with("hbm.K.") || e.figure.starts_with("hbm.V.");
    if (e.figure.starts_with("hbm.") && !of_cache) way.explanations.push_back(e);
  }
  return way;
}

/// Errors: a count that leaves 64 bits, as nothing.
std::optional<std::vector<DecodeWay>> decode_ways(const CacheReport& r) {
  std::vector<DecodeWay> ways;
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::flash2}) {
    auto way = predicted_way(algorithm, r);
    if (!way) return std::nullopt;
    ways.push_back(std::move(*way));
  }
  DecodeWay packed = ways.back();
  packed.name = "packed heads";
  packed.reads = 1;
  packed.cache = Bytes(cache_traffic(r.decode, r.layout).packed.value());
  ways.push_back(std::move(packed));

  const Count layers = r.layout.layers;
  for (DecodeWay& way : ways) {
    way.step = (way.attention() + Bytes(r.new_rows.value())) * layers;
    const Count flops = layers * r.flops.value();
    if (way.step.overflowed() || flops.overflowed()) return std::nullopt;
    way.least_time = way.step / r.machine.memory_bandwidth;
    way.most_tokens_per_second = static_cast<double>(r.decode.batch) / way.least_time.value;
    way.intensity = Flops(flops) / way.step;
  }
  return ways;
}

Room room_in(Bytes memory, const CacheSize& size) {
  return {.tokens = memory.value() / size.token.value().value(),
          .sequences = memory.value() / size.sequence.value().value()};
}

}  // namespace

const CacheSize& CacheReport::size() const {
  for (const CacheGrouping& grouping : groupings) {
    if (grouping.is_this) return grouping.size;
  }
  return groupings.front().size;
}

Room CacheReport::room_of(const CacheGrouping& grouping) const {
  return room_in(machine.memory, grouping.size);
}

Result<CacheReport> make_cache_report(const CacheRequest& request) {
  CacheReport report;
  const auto problem = resolve_problem(request.account);
  if (!problem) return problem.error();
  report.prefill = *problem;
  report.prefill.kv_seq = report.prefill.seq;
  report.decode = report.prefill;
  report.decode.seq = 1;
  const auto layout = resolve_layout(request, report.prefill);
  if (!layout) return layout.error();
  report.layout = *layout;
  report.gpu = request.account.gpu.value_or("a100");
  auto machine = find_machine(report.gpu);
  if (!machine) return machine.error();
  report.machine = std::move(machine).value();

  report.row = cache_row_bytes(report.prefill.head_dim, report.layout);
  report.groupings = groupings_of(report.prefill, report.layout);
  for (const CacheGrouping& grouping : report.groupings) {
    if (grouping.size.batch.value().overflowed()) return cache_leaves_64_bits(report);
  }
  report.left = report.fits_memory() ? report.machine.memory - report.bytes() : Bytes();
  report.room = room_in(report.machine.memory, report.size());
  report.room_left = room_in(report.left, report.size());

  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager, Algorithm::flash2}) {
    CallMemory call{.algorithm = algorithm,
                    .intermediate = predict(algorithm, report.prefill, Tiling{}).intermediate,
                    .peak = {}};
    call.peak = total_size(call.intermediate);
    if (call.peak.overflowed()) return cache_leaves_64_bits(report);
    report.calls.push_back(std::move(call));
  }

  report.new_rows = cache_traffic(report.decode, report.layout).new_rows;
  report.flops = problem_flops(report.decode).exact;
  auto ways = decode_ways(report);
  if (!ways) return cache_leaves_64_bits(report);
  report.ways = std::move(*ways);
  return report;
}

}  // namespace flashsim
