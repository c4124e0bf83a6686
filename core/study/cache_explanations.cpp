// The formulas behind `cache --explain`.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/account/kv_cache.hpp"
#include "core/study/cache.hpp"

namespace flashsim {
namespace {

/// "multi_head", as figures are named.
std::string as_figure(std::string name) {
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
}

class Explainer {
 public:
  void add(const std::string& figure, const Formula& formula) {
    figures_.push_back({figure, formula.symbols(), formula.numbers(), formula.value().value()});
  }
  void add(const std::string& figure, const std::string& symbols, const std::string& numbers,
           std::variant<std::int64_t, double> value) {
    figures_.push_back({figure, symbols, numbers, value});
  }
  std::vector<ExplainedFigure> finish() { return std::move(figures_); }

 private:
  std::vector<ExplainedFigure> figures_;
};

/// Bytes of a whole tensor of the problem, as a product: B·H·N·Nkv·e.
Formula tensor_formula(Operand operand, const Problem& p) {
  const Formula heads = Formula("B", p.batch) * Formula("H", p.heads);
  const Formula size(is_accumulated(operand) ? "a" : "e", element_size(operand, p));
  const Formula queries("N", p.seq);
  switch (shape_of(operand)) {
    case OperandShape::query_rows: return heads * queries * Formula("d", p.head_dim) * size;
    case OperandShape::scores: return heads * queries * Formula("N", p.kv_seq) * size;
    case OperandShape::row_statistic: return heads * queries * size;
    case OperandShape::key_rows: break;
  }
  return Formula("B", p.batch) * Formula("Hkv", p.kv_heads) * Formula("N", p.kv_seq) *
         Formula("d", p.head_dim) * size;
}

void explain_cache(const CacheReport& r, Explainer& out) {
  out.add("cache.row_bytes", r.row);
  out.add("cache.token_bytes", r.size().token);
  out.add("cache.sequence_bytes", r.size().sequence);
  out.add("cache.bytes", r.size().batch);
  for (const CacheGrouping& grouping : r.groupings) {
    if (!grouping.is_this)
      out.add(fmt::format("cache.{}.bytes", as_figure(grouping.name)), grouping.size.batch);
  }
}

void explain_memory(const CacheReport& r, Explainer& out) {
  const std::int64_t memory = r.machine.memory.value();
  const std::int64_t token = r.token_bytes().value();
  const std::int64_t sequence = r.sequence_bytes().value();
  out.add("memory.share", "cache / memory", fmt::format("{} / {}", r.bytes().value(), memory),
          ratio(r.bytes(), r.machine.memory));
  if (r.fits_memory()) {
    out.add("memory.left_bytes", "memory − cache", fmt::format("{} − {}", memory, r.bytes().value()),
            r.left.value());
  }
  out.add("memory.tokens_that_fit", "⌊memory / a token⌋", fmt::format("⌊{} / {}⌋", memory, token),
          r.room.tokens);
  out.add("memory.sequences_that_fit", "⌊memory / a sequence⌋", fmt::format("⌊{} / {}⌋", memory, sequence),
          r.room.sequences);
  out.add("memory.tokens_left", "⌊left / a token⌋", fmt::format("⌊{} / {}⌋", r.left.value(), token),
          r.room_left.tokens);
  out.add("memory.sequences_left", "⌊left / a sequence⌋", fmt::format("⌊{} / {}⌋", r.left.value(), sequence),
          r.room_left.sequences);
}

void explain_calls(const CacheReport& r, Explainer& out) {
  for (const CallMemory& call : r.calls) {
    Formula sum = tensor_formula(call.intermediate.front().operand, r.prefill);
    for (std::size_t i = 1; i < call.intermediate.size(); ++i) {
      sum = sum + tensor_formula(call.intermediate[i].operand, r.prefill);
    }
    out.add(fmt::format("prefill.{}.peak_intermediate_bytes", facts_of(call.algorithm).name), sum);
  }
}

void explain_decode(const CacheReport& r, Explainer& out) {
  const CacheTraffic cache = cache_traffic(r.decode, r.layout);
  out.add("decode.new_rows_bytes", r.new_rows);
  out.add("decode.flops", r.flops);
  for (const DecodeWay& way : r.ways) {
    const std::string figure = "decode." + as_figure(way.name);
    out.add(figure + ".cache_bytes", way.reads == 1 ? cache.packed : cache.unpacked);
    for (const Explanation& e : way.explanations) {
      out.add(fmt::format("{}.{}", figure, e.figure), e.symbols, e.numbers, e.value.value());
    }
    out.add(figure + ".attention_bytes", "cache + S and P + the rest",
            fmt::format("{} + {} + {}", way.cache.value(), way.scores.value(), way.rest.value()),
            way.attention().value());
    out.add(
        figure + ".step_bytes", "layers·(attention + new rows)",
        fmt::format("{} · ({} + {})", r.layout.layers, way.attention().value(), r.new_rows.value().value()),
        way.step.value());
    out.add(figure + ".flops_per_byte", "layers·FLOPs / step",
            fmt::format("{} · {} / {}", r.layout.layers, r.flops.value().value(), way.step.value()),
            way.intensity.value);
    out.add(figure + ".least_seconds", "step / bandwidth",
            fmt::format("{} / {}", way.step.value(), r.machine.memory_bandwidth.value), way.least_time.value);
    out.add(figure + ".most_tokens_per_second", "B / seconds",
            fmt::format("{} / {:.6g}", r.decode.batch, way.least_time.value), way.most_tokens_per_second);
  }
  out.add("decode.score_share", "standard's S and P / standard",
          fmt::format("{} / {}", r.standard().scores.value(), r.standard().attention().value()),
          r.score_share());
  out.add("decode.standard_over_flash", "standard / flash2",
          fmt::format("{} / {}", r.standard().attention().value(), r.flash().attention().value()),
          r.standard_over_flash());
}

}  // namespace

std::vector<ExplainedFigure> explanations_of(const CacheReport& report) {
  Explainer out;
  explain_cache(report, out);
  explain_memory(report, out);
  explain_calls(report, out);
  explain_decode(report, out);
  return out.finish();
}

}  // namespace flashsim
