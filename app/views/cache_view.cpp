#include "app/views/cache_view.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/views/account_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

std::string percent(double share) { return three_digits(100 * share) + " %"; }

/// "1 layer", "32 layers", "8 192 sequences"
std::string plural(std::int64_t number, const std::string& one) {
  return fmt::format("{} {}{}", grouped(number), one, number == 1 ? "" : "s");
}

/// "fp16", "int4 in groups of 128"
std::string layout_text(const CacheLayout& layout) {
  const CacheTypeFacts& facts = facts_of(layout.type);
  return facts.quantized() ? fmt::format("{} in groups of {}", facts.name, layout.group)
                           : std::string(facts.name);
}

/// A rate with a decimal prefix: "2.04 TB/s", "412 tokens/s".
std::string rate_text(double rate, const std::string& unit) {
  constexpr double kLargest = 9e18;  // what an integer can hold
  if (rate < 1000 || rate > kLargest) return fmt::format("{} {}/s", three_digits(rate), unit);
  const std::string prefixed = decimal_text(static_cast<std::int64_t>(rate));
  return fmt::format("{}{}/s", prefixed, unit);
}

TableBlock grouping_table(const CacheReport& r) {
  TableBlock table{.heading = "KV cache",
                   .columns = {"Hkv", "a token", "a sequence", fmt::format("B {}", r.prefill.batch),
                               "of the GPU", "sequences that fit"}};
  for (const CacheGrouping& grouping : r.groupings) {
    const Bytes all(grouping.size.batch.value());
    table.rows.push_back({grouping.name + (grouping.is_this ? ": this one" : ""),
                          fmt::format("{}", grouping.kv_heads), size_text(Bytes(grouping.size.token.value())),
                          size_text(Bytes(grouping.size.sequence.value())), size_text(all),
                          percent(ratio(all, r.machine.memory)), grouped(r.room_of(grouping).sequences)});
  }
  return table;
}

FactsBlock stays_facts(const CacheReport& r) {
  FactsBlock block{.heading = "Stays between calls, and grows with the context"};
  block.facts.push_back({"KV cache", size_text(r.bytes()),
                         fmt::format("{} the {} of the {}", r.fits_memory() ? "fits" : "does NOT fit",
                                     size_text(r.machine.memory), r.machine.title)});
  block.facts.push_back({"each token more", size_text(r.token_bytes()),
                         fmt::format("of each sequence: a key and a value for {} in {}",
                                     plural(r.prefill.kv_heads, "head"), plural(r.layout.layers, "layer"))});
  const Room room = r.fits_memory() ? r.room_left : r.room;
  block.facts.push_back(
      {"left", size_text(r.left),
       fmt::format("{} {}, or {} of {}; weights and activations need memory too and aren't counted",
                   r.fits_memory() ? "for" : "the GPU holds",
                   plural(room.tokens, r.fits_memory() ? "more token" : "token"),
                   plural(room.sequences, "sequence"), r.prefill.seq)});
  return block;
}

FactsBlock goes_facts(const CacheReport& r) {
  FactsBlock block{
      .heading = "Gone after the call, and used again by the next layer: intermediate memory of prefill"};
  for (const CallMemory& call : r.calls) {
    block.facts.push_back(
        {std::string(facts_of(call.algorithm).name), size_text(call.peak), alive_text(call.intermediate)});
  }
  return block;
}

/// "once", "4 times"
std::string reads_text(const DecodeWay& way) {
  return way.reads == 1 ? "once" : fmt::format("{} times", grouped(way.reads));
}

TableBlock decode_table(const CacheReport& r) {
  TableBlock table{.heading = "Decode step, one layer",
                   .columns = {"K and V read", "K and V", "S and P", "Q, O, L", "total", "FLOP/B"}};
  for (const DecodeWay& way : r.ways) {
    table.rows.push_back({way.name, reads_text(way), size_text(way.cache),
                          way.scores == Bytes() ? "–" : size_text(way.scores), size_text(way.rest),
                          size_text(way.attention()), three_digits(way.intensity.value)});
  }
  return table;
}

/// Why flash helps prefill and not a decode step: there is hardly a score matrix to leave out.
std::string flash_in_decode_text(const CacheReport& r) {
  constexpr double kHelps = 1.5;
  return fmt::format(
      "{}S and P are {} of what standard moves, and flash, which does without, moves {} × less.",
      r.standard_over_flash() < kHelps ? "Flash hardly helps a decode step: " : "", percent(r.score_share()),
      three_digits(r.standard_over_flash()));
}

std::string balance_text(const CacheReport& r) {
  const auto balance = r.machine.balance(r.decode.storage);
  const std::string type(name_of(r.decode.storage));
  if (!balance) return fmt::format("no {} rate of the {} is known", type, r.machine.title);
  return fmt::format("the {} balances at {} in {}, so {}", r.machine.title, three_digits(balance->value),
                     type, r.packed().intensity.value < balance->value ? "HBM binds" : "arithmetic binds");
}

FactsBlock step_facts(const CacheReport& r) {
  const DecodeWay& packed = r.packed();
  FactsBlock block{.heading = fmt::format("Decode step, {}, heads packed", plural(r.layout.layers, "layer"))};
  block.facts.push_back({"bytes", size_text(packed.step),
                         fmt::format("with the new keys and values written, {} a layer",
                                     size_text(Bytes(r.new_rows.value())))});
  block.facts.push_back(
      {"matrix products", flops_text(Flops(r.flops.value() * Count(r.layout.layers))),
       fmt::format("{} FLOP/B; {}", three_digits(packed.intensity.value), balance_text(r))});
  block.facts.push_back(
      {"time at least", seconds_text(packed.least_time),
       fmt::format("by HBM bandwidth alone: a bound from the {} rate of {}, not a measurement",
                   r.machine.rates, rate_text(r.machine.memory_bandwidth.value, "B"))});
  block.facts.push_back(
      {"tokens at most", rate_text(packed.most_tokens_per_second, ""),
       fmt::format("the same bound for all sequences together{}; weights move too and aren't counted",
                   packed.cache == r.flash().cache
                       ? ""
                       : fmt::format(", {} where heads aren't packed",
                                     rate_text(r.flash().most_tokens_per_second, "")))});
  return block;
}

std::vector<std::string> legend(const CacheReport& r) {
  const CacheTypeFacts& facts = facts_of(r.layout.type);
  std::vector<std::string> lines{fmt::format(
      "R: bytes of a row, which is one token's key or value of one head, in {}", layout_text(r.layout))};
  if (facts.quantized()) {
    lines.push_back(fmt::format("⌈d/G⌉: groups of a row, each with {} B of {} in fp16", facts.group_bytes,
                                facts.type == CacheType::int8 ? "scale" : "scale and zero point"));
  } else {
    lines.push_back(fmt::format("c = {}: bytes of an element of the cache", facts.bits / 8));
  }
  lines.push_back(
      fmt::format("e = {} and a = {}: bytes of an element in storage ({}) and in accumulation ({})",
                  size_of(r.prefill.storage), size_of(r.prefill.accumulation()), name_of(r.prefill.storage),
                  name_of(r.prefill.accumulation())));
  lines.emplace_back("decode: one layer; under hbm N = 1, the query of a sequence, and Nkv is the context");
  return lines;
}

void add_explanations(const CacheReport& r, Document& document) {
  document.emplace_back(explanations_table(explanations_of(r)));
  document.emplace_back(LinesBlock{legend(r)});
}

}  // namespace

Document cache_document(const CacheReport& report, bool explain) {
  const CacheReport& r = report;
  Document document;
  document.emplace_back(Title{
      "KV cache",
      fmt::format("{} · {} · {} · cache {} · {}", shape_text(r.prefill), plural(r.layout.layers, "layer"),
                  name_of(r.prefill.storage), layout_text(r.layout), r.machine.title)});
  document.emplace_back(grouping_table(r));
  document.emplace_back(stays_facts(r));
  document.emplace_back(goes_facts(r));
  document.emplace_back(VerdictLine{
      Tone::neutral,
      "Flash removes S and P, which are gone after the call; it doesn't touch the KV cache, which stays."});
  document.emplace_back(decode_table(r));
  document.emplace_back(VerdictLine{Tone::neutral, flash_in_decode_text(r)});
  document.emplace_back(step_facts(r));
  if (explain) add_explanations(r, document);
  return document;
}

CsvTable cache_csv(const CacheReport& report, bool explain) {
  const CacheReport& r = report;
  CsvTable table{.header = {"section", "item", "quantity", "value"}};
  const auto add = [&](const std::string& section, const std::string& item, const std::string& quantity,
                       const auto& value) {
    table.rows.push_back({section, item, quantity, fmt::format("{}", value)});
  };
  const Problem& p = r.prefill;
  const CacheTypeFacts& type = facts_of(r.layout.type);
  for (const auto& [name, value] : {std::pair{"batch", p.batch},
                                    {"heads", p.heads},
                                    {"kv_heads", p.kv_heads},
                                    {"seq", p.seq},
                                    {"head_dim", p.head_dim},
                                    {"layers", r.layout.layers}}) {
    add("input", "", name, value);
  }
  add("input", "", "dtype", name_of(p.storage));
  add("input", "", "cache_dtype", type.name);
  add("input", "", "cache_group", type.quantized() ? fmt::format("{}", r.layout.group) : "");
  add("input", "", "gpu", r.gpu);
  add("cache", "this", "row_bytes", r.row.value().value());
  add("cache", "this", "token_bytes", r.token_bytes().value());
  add("cache", "this", "sequence_bytes", r.sequence_bytes().value());
  add("cache", "this", "bytes", r.bytes().value());
  for (const CacheGrouping& grouping : r.groupings) {
    add("grouping", grouping.name, "kv_heads", grouping.kv_heads);
    add("grouping", grouping.name, "token_bytes", grouping.size.token.value().value());
    add("grouping", grouping.name, "sequence_bytes", grouping.size.sequence.value().value());
    add("grouping", grouping.name, "bytes", grouping.size.batch.value().value());
    const Room room = r.room_of(grouping);
    add("grouping", grouping.name, "tokens_that_fit", room.tokens);
    add("grouping", grouping.name, "sequences_that_fit", room.sequences);
  }
  add("memory", "machine", "bytes", r.machine.memory.value());
  add("memory", "fits", "", r.fits_memory());
  add("memory", "share", "", ratio(r.bytes(), r.machine.memory));
  add("memory", "left", "bytes", r.left.value());
  add("memory", "that_fit", "tokens", r.room.tokens);
  add("memory", "that_fit", "sequences", r.room.sequences);
  add("memory", "left", "tokens", r.room_left.tokens);
  add("memory", "left", "sequences", r.room_left.sequences);
  for (const CallMemory& call : r.calls) {
    add("prefill", std::string(facts_of(call.algorithm).name), "peak_intermediate_bytes", call.peak.value());
  }
  add("decode", "new_rows", "bytes", r.new_rows.value().value());
  add("decode", "products", "flops", r.flops.value().value());
  for (const DecodeWay& way : r.ways) {
    add("decode", way.name, "reads_of_a_kv_head", way.reads);
    add("decode", way.name, "cache_bytes", way.cache.value());
    add("decode", way.name, "score_bytes", way.scores.value());
    add("decode", way.name, "rest_bytes", way.rest.value());
    add("decode", way.name, "attention_bytes", way.attention().value());
    add("decode", way.name, "step_bytes", way.step.value());
    add("decode", way.name, "flops_per_byte", way.intensity.value);
    add("decode", way.name, "least_seconds", way.least_time.value);
    add("decode", way.name, "most_tokens_per_second", way.most_tokens_per_second);
  }
  add("decode", "standard", "score_share", r.score_share());
  add("decode", "standard", "over_flash", r.standard_over_flash());
  add("decode", "machine", "hbm_bytes_per_second", r.machine.memory_bandwidth.value);
  add("decode", "machine", "rates", r.machine.rates);
  const auto balance = r.machine.balance(r.decode.storage);
  add("decode", "machine", "flops_per_hbm_byte", balance ? fmt::format("{}", balance->value) : "");
  if (explain) {
    for (const ExplainedFigure& e : explanations_of(r)) add("formula", e.figure, e.symbols, e.numbers);
  }
  return table;
}

}  // namespace flashsim
