#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/study/report_json.hpp"
#include "core/study/tune.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSchema = "flashsim.tune/1";

ordered_json tile_json(const TileChoice& tile, Bytes sram) {
  return {{"tile_q", tile.tiling.query_rows},
          {"tile_k", tile.tiling.key_rows},
          {"footprint_bytes", tile.footprint.value()},
          {"hbm_total_bytes", tile.hbm.value()},
          {"fits", tile.footprint <= sram}};
}

ordered_json tile_json(const std::optional<TileChoice>& tile, Bytes sram) {
  return tile ? tile_json(*tile, sram) : ordered_json(nullptr);
}

ordered_json theory_json(const TheoryBound& bound) {
  return {{"sram_elements", bound.elements},
          {"order", bound.large ? "N*Nkv*d^2/M" : "N*Nkv*d/sqrt(M)"},
          {"order_bytes", number_json(bound.bytes)}};
}

ordered_json order_json(const OrderTuning& order, Bytes sram) {
  ordered_json front = ordered_json::array();
  for (const TileChoice& tile : order.front) front.push_back(tile_json(tile, sram));
  const Payoff& payoff = order.payoff;
  return {{"algorithm", facts_of(order.algorithm).name},
          {"candidates", order.candidates},
          {"best", tile_json(order.best, sram)},
          {"paper", tile_json(order.paper, sram)},
          {"chosen", tile_json(order.chosen, sram)},
          {"front", std::move(front)},
          {"pays",
           {{"leading_order_rows", payoff.leading_order_rows},
            {"searched_rows", payoff.searched_rows},
            {"smallest_tile", tile_json(payoff.smallest_tile, sram)},
            {"smallest_sram", tile_json(payoff.smallest_sram, sram)}}}};
}

}  // namespace

ordered_json tune_json(const TuneReport& report) {
  ordered_json input = problem_json(report.problem);
  input["sram_bytes"] = report.sram.value();
  input["gpu"] = report.gpu;
  input["multiple_of"] = report.multiple_of;
  ordered_json orders = ordered_json::array();
  for (const OrderTuning& order : report.orders) orders.push_back(order_json(order, report.sram));
  ordered_json curve = ordered_json::array();
  for (const TunedSize& size : report.curve) {
    ordered_json entry{{"sram_bytes", size.sram.value()}};
    entry["lower_bound_order_bytes"] = number_json(size.theory.bytes);
    for (std::size_t o = 0; o < report.orders.size(); ++o) {
      entry[fmt::format("{}_hbm_total_bytes", facts_of(report.orders[o].algorithm).name)] =
          size.best[o] ? ordered_json(size.best[o]->value()) : ordered_json(nullptr);
    }
    curve.push_back(std::move(entry));
  }
  return {{"schema", kSchema},
          {"input", std::move(input)},
          {"result",
           {{"compulsory_bytes", report.compulsory.value()},
            {"standard_hbm_total_bytes", report.standard.value()},
            {"lower_bound", theory_json(report.theory)},
            {"orders", std::move(orders)},
            {"curve", std::move(curve)}}}};
}

Result<TuneRequest> read_tune_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {kSchema});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  TuneRequest request{.account = read_request_keys(reader)};
  for (const char* key : {"algorithm", "tile_q", "tile_k"}) {
    if (reader.has(key)) reader.fail({fmt::format("{} is what tune looks for", reader.path_of(key)), ""});
  }
  request.multiple_of = reader.dimension("multiple_of");
  if (auto error = reader.finish()) return *error;
  return request;
}

}  // namespace flashsim
