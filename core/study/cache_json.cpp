#include <string>

#include <nlohmann/json.hpp>

#include "core/study/cache.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

ordered_json input_json(const CacheReport& r) {
  const Problem& p = r.prefill;
  const CacheTypeFacts& type = facts_of(r.layout.type);
  return {{"batch", p.batch},
          {"heads", p.heads},
          {"kv_heads", p.kv_heads},
          {"seq", p.seq},
          {"head_dim", p.head_dim},
          {"layers", r.layout.layers},
          {"dtype", name_of(p.storage)},
          {"cache_dtype", type.name},
          {"cache_group", type.quantized() ? ordered_json(r.layout.group) : ordered_json(nullptr)},
          {"gpu", r.gpu}};
}

ordered_json cache_part(const CacheReport& r) {
  ordered_json groupings = ordered_json::array();
  for (const CacheGrouping& grouping : r.groupings) {
    const Room room = r.room_of(grouping);
    groupings.push_back({{"grouping", grouping.name},
                         {"kv_heads", grouping.kv_heads},
                         {"this", grouping.is_this},
                         {"token_bytes", grouping.size.token.value().value()},
                         {"sequence_bytes", grouping.size.sequence.value().value()},
                         {"bytes", grouping.size.batch.value().value()},
                         {"tokens_that_fit", room.tokens},
                         {"sequences_that_fit", room.sequences}});
  }
  return {{"row_bytes", r.row.value().value()},
          {"token_bytes", r.token_bytes().value()},
          {"sequence_bytes", r.sequence_bytes().value()},
          {"bytes", r.bytes().value()},
          {"groupings", std::move(groupings)}};
}

ordered_json memory_part(const CacheReport& r) {
  return {{"machine_bytes", r.machine.memory.value()},
          {"fits", r.fits_memory()},
          {"share", ratio(r.bytes(), r.machine.memory)},
          {"left_bytes", r.left.value()},
          {"tokens_that_fit", r.room.tokens},
          {"sequences_that_fit", r.room.sequences},
          {"tokens_left", r.room_left.tokens},
          {"sequences_left", r.room_left.sequences}};
}

ordered_json prefill_part(const CacheReport& r) {
  ordered_json calls = ordered_json::array();
  for (const CallMemory& call : r.calls) {
    ordered_json tensors = ordered_json::array();
    for (const Alive& tensor : call.intermediate) {
      tensors.push_back(
          {{"tensor", name_of(tensor.operand)}, {"bytes", tensor.size.value()}, {"note", tensor.note}});
    }
    calls.push_back({{"algorithm", facts_of(call.algorithm).name},
                     {"peak_intermediate_bytes", call.peak.value()},
                     {"peak_intermediate", std::move(tensors)}});
  }
  return calls;
}

ordered_json decode_part(const CacheReport& r) {
  ordered_json ways = ordered_json::array();
  for (const DecodeWay& way : r.ways) {
    ways.push_back({{"way", way.name},
                    {"reads_of_a_kv_head", way.reads},
                    {"cache_bytes", way.cache.value()},
                    {"score_bytes", way.scores.value()},
                    {"rest_bytes", way.rest.value()},
                    {"attention_bytes", way.attention().value()},
                    {"step_bytes", way.step.value()},
                    {"flops_per_byte", way.intensity.value},
                    {"least_seconds", way.least_time.value},
                    {"most_tokens_per_second", way.most_tokens_per_second}});
  }
  const auto balance = r.machine.balance(r.decode.storage);
  return {{"new_rows_bytes", r.new_rows.value().value()},
          {"flops", r.flops.value().value()},
          {"ways", std::move(ways)},
          {"score_share", r.score_share()},
          {"standard_over_flash", r.standard_over_flash()},
          {"hbm_bytes_per_second", r.machine.memory_bandwidth.value},
          {"rates", r.machine.rates},
          {"machine_flops_per_hbm_byte", balance ? ordered_json(balance->value) : ordered_json(nullptr)}};
}

}  // namespace

ordered_json cache_json(const CacheReport& r, bool explain) {
  ordered_json result{{"cache", cache_part(r)},
                      {"memory", memory_part(r)},
                      {"prefill", prefill_part(r)},
                      {"decode", decode_part(r)}};
  if (explain) result["explanations"] = explanations_json(explanations_of(r));
  return {{"schema", "flashsim.cache/1"}, {"input", input_json(r)}, {"result", std::move(result)}};
}

}  // namespace flashsim
