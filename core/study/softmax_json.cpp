#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/study/request.hpp"
#include "core/study/softmax.hpp"
#include "core/study/traffic.hpp"

namespace flashsim {

using nlohmann::ordered_json;

Result<SoftmaxRequest> read_softmax_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {"flashsim.softmax/1"});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  SoftmaxRequest request;
  request.rows = reader.dimension("rows");
  request.columns = reader.dimension("columns");
  request.top_k = reader.dimension("top_k");
  request.dtype = reader.named<NumberType>(
      "dtype", [](const std::string& name) { return storage_type_named("type", name); });
  request.shared_memory = read_shared_memory(reader);
  request.gpu = reader.text("gpu");
  if (auto error = reader.finish()) return *error;
  return request;
}

namespace {

ordered_json way_json(const SoftmaxAccount& account) {
  const SoftmaxWayFacts& facts = facts_of(account.way);
  const SoftmaxTally& tally = account.prediction.tally;
  ordered_json json{{"way", facts.name},
                    {"kernels", tally.kernels.value()},
                    {"passes", tally.passes.value()},
                    {"loads_per_element", account.loads},
                    {"stores_per_element", account.stores},
                    {"accesses_per_element", account.loads + account.stores}};
  json["hbm"] = flow_json(tally.total());
  json["hbm"]["total_bytes"] = tally.total().total().value();
  json["hbm"]["input"] = flow_json(tally.input);
  json["hbm"]["output"] = flow_json(tally.output);
  json["hbm"]["results"] = flow_json(tally.results);
  json["exponentials"] = tally.exponentials.value();
  json["subtracts_max"] = facts.subtracts_max;
  json["formula"] = {{"read", account.prediction.read.symbols()},
                     {"written", account.prediction.written.symbols()}};
  json["steps_per_row"] = tally.steps.value();
  json["predicted_equals_counted"] =
      account.counted ? ordered_json(account.discrepancies.empty()) : ordered_json(nullptr);
  json["discrepancies"] = discrepancies_json(account.discrepancies);
  return json;
}

}  // namespace

ordered_json softmax_json(const SoftmaxReport& r) {
  const SoftmaxProblem& p = r.problem;
  ordered_json ways = ordered_json::array();
  for (const SoftmaxAccount& account : r.ways) ways.push_back(way_json(account));
  return {{"schema", "flashsim.softmax/1"},
          {"input",
           {{"rows", p.rows},
            {"columns", p.columns},
            {"dtype", name_of(p.storage)},
            {"top_k", p.top_k ? ordered_json(*p.top_k) : ordered_json(nullptr)},
            {"sram_bytes", r.shared_memory.value()},
            {"gpu", r.gpu}}},
          {"result",
           {{"row_bytes", p.row_bytes().value()},
            {"row_fits", r.chip.fits()},
            {"rows_on_chip", r.chip.rows},
            {"columns_on_chip", r.chip.columns},
            {"naive",
             {{"accumulation", name_of(r.naive.accumulation)},
              {"largest_score", r.naive.largest},
              {"largest_equal_scores", r.naive.largest_even},
              {"smallest_score", r.naive.smallest}}},
            {"ways", std::move(ways)}}}};
}

}  // namespace flashsim
