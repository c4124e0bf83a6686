#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/attention/attend.hpp"
#include "core/base/json_reader.hpp"
#include "core/study/report_json.hpp"
#include "core/study/tensor_json.hpp"
#include "core/study/traffic.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

/// Results of up to so many numbers stand in the JSON.
constexpr std::size_t kMostNumbers = 4096;

ordered_json element_json(const Element& element) {
  return {{"at", place_json(element.at)},
          {"got", number_json(element.got)},
          {"expected", number_json(element.expected)}};
}

ordered_json error_json(const Comparison& c) {
  return {{"max_abs", number_json(c.max_abs.size)},
          {"max_rel", number_json(c.max_rel.size)},
          {"max_ulp", number_json(c.max_ulp.size)},
          {"at", place_json(c.max_abs.element.at)},
          {"tolerance", number_json(c.tolerance)},
          {"elements", c.elements},
          {"wrong_elements", c.wrong_elements},
          {"rows", c.rows},
          {"wrong_rows", c.wrong_rows},
          {"first_wrong", c.first_wrong ? element_json(*c.first_wrong) : ordered_json(nullptr)}};
}

ordered_json tolerance_json(const Tolerance& t) {
  ordered_json json;
  if (t.backward) {
    json = {{"dq", number_json(t.dq.value())},
            {"dk", number_json(t.dk.value())},
            {"dv", number_json(t.dv.value())}};
  } else {
    json = {{"output", number_json(t.output.value())}, {"lse", number_json(t.lse.value())}};
  }
  json["epsilon"] = t.epsilon;
  json["unit"] = t.unit;
  json["largest_score"] = t.magnitudes.score;
  json["largest_value"] = t.magnitudes.value;
  json["formulas"] = ordered_json::array();
  for (const NamedFormula& named : formulas_of(t)) {
    json["formulas"].push_back({{"name", named.name},
                                {"meaning", named.meaning},
                                {"formula", named.formula.symbols()},
                                {"numbers", named.formula.numbers()},
                                {"value", number_json(named.formula.value())}});
  }
  return json;
}

/// Which rows were checked, and how many of them are wrong.
ordered_json rows_json(const RowSample& sample, std::int64_t wrong) {
  return {{"checked", sample.rows.size()},
          {"wrong", wrong},
          {"total", sample.of},
          {"sampled", !sample.whole()},
          {"note", sample.note}};
}

ordered_json gradients_json(const RunReport& r) {
  if (!r.gradient_verification) return nullptr;
  const GradientVerification& g = *r.gradient_verification;
  return {{"dq", error_json(g.dq)},
          {"dk", error_json(g.dk)},
          {"dv", error_json(g.dv)},
          {"tolerance", tolerance_json(g.tolerance)},
          {"query_rows", rows_json(g.queries, g.dq.wrong_rows)},
          {"key_rows", rows_json(g.keys, std::max(g.dk.wrong_rows, g.dv.wrong_rows))}};
}

ordered_json first_fault_json(const RunReport& r) {
  if (!r.first_fault) return nullptr;
  const FirstFault& f = *r.first_fault;
  const auto or_null = [](std::optional<std::int64_t> value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  return {{"batch", f.place.batch},
          {"head", f.place.head},
          {"row", f.place.row},
          {"query_tile", f.query_tile},
          {"key_tile", or_null(f.key_tile)},
          {"column", or_null(f.column)},
          {"got", number_json(f.got)},
          {"expected", number_json(f.expected)},
          {"tolerance", number_json(f.tolerance)}};
}

ordered_json pass_json(const PassReport& pass, const Problem& problem) {
  return {{"seconds", pass.seconds.value},       {"gflops", number_json(pass.rate().value / 1e9)},
          {"flops", pass.flops.value()},         {"flops_formula", pass.flops_formula},
          {"steps", pass.tally().steps.value()}, {"hbm", hbm_json(pass.tally(), problem)}};
}

/// null for the CPU.
ordered_json device_json(const RunReport& r) {
  if (!r.device) return nullptr;
  return {{"name", r.device->name},
          {"compute_capability", r.device->compute_capability},
          {"driver", r.device->driver},
          {"cuda", r.device->runtime}};
}

template <class T>
void add_tensors(const RunResults<T>& results, ordered_json& json) {
  const bool small = results.outputs.o.data().size() <= kMostNumbers;
  json["output"] = small ? tensor_json(results.outputs.o) : ordered_json(nullptr);
  json["lse"] = small ? lse_json(results.outputs.lse) : ordered_json(nullptr);
  json["gradients"] = nullptr;
  if (!small || !results.gradients) return;
  json["gradients"] = {{"dq", tensor_json(results.gradients->dq)},
                       {"dk", tensor_json(results.gradients->dk)},
                       {"dv", tensor_json(results.gradients->dv)}};
}

}  // namespace

ordered_json run_json(const RunReport& r) {
  const Problem& p = r.plan.problem;
  ordered_json result;
  result["verdict"] = name_of(r.verdict);
  result["why"] = r.why;
  result["error"] = error_json(r.verification.output);
  result["lse_error"] = error_json(r.verification.lse);
  result["tolerance"] = tolerance_json(r.verification.tolerance);
  result["rows"] = rows_json(r.verification.sample, r.verification.wrong_rows());
  result["gradient_errors"] = gradients_json(r);
  result["first_fault"] = first_fault_json(r);
  result.update(pass_json(r.forward, p));
  result["splits"] = r.plan.splits ? ordered_json(r.plan.splits->splits) : ordered_json(nullptr);
  result["threads"] = r.plan.threads;
  result["vector_target"] = vector_target();
  result["device"] = device_json(r);
  const auto equal = r.predicted_equals_counted();
  result["predicted_equals_counted"] = equal ? ordered_json(*equal) : ordered_json(nullptr);
  std::vector<Discrepancy> all = r.discrepancies;
  for (Discrepancy d : r.backward_discrepancies) {
    d.figure = "backward." + d.figure;
    all.push_back(std::move(d));
  }
  result["discrepancies"] = discrepancies_json(all);
  result["backward"] = r.backward ? pass_json(*r.backward, p) : ordered_json(nullptr);
  std::visit([&](const auto& results) { add_tensors(results, result); }, r.results);
  result["saved"] = r.saved;
  return {{"schema", "flashsim.run/1"}, {"input", run_input_json(r.plan)}, {"result", std::move(result)}};
}

}  // namespace flashsim
