#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/study/measure.hpp"
#include "core/study/method_choice.hpp"
#include "core/study/tensor_json.hpp"
#include "core/study/traffic.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? ordered_json(bytes->value()) : ordered_json(nullptr);
}

ordered_json share_json(const std::optional<double>& share) {
  return share ? number_json(*share) : ordered_json(nullptr);
}

/// The first wrong element of those tensors, or null.
ordered_json first_wrong_json(const KernelReport& kernel, std::span<const std::string_view> of) {
  for (const auto& [name, comparison] : kernel.checked()) {
    if (!comparison->first_wrong || std::count(of.begin(), of.end(), name) == 0) continue;
    return {{"tensor", name},
            {"at", place_json(comparison->first_wrong->at)},
            {"got", number_json(comparison->first_wrong->got)},
            {"expected", number_json(comparison->first_wrong->expected)}};
  }
  return nullptr;
}

ordered_json input_json(const MeasureReport& r) {
  const MeasureRequest& request = r.request;
  // Of several kernels each may have a type of its own, which then follows again.
  const bool one_type = !request.asks_for_all() || request.account.dtype;
  const RunPlan& plan = r.kernels.front().plan;
  ordered_json input{
      {"kernel",
       request.asks_for_all() ? ordered_json("all") : ordered_json(facts_of(r.kernels.front().kernel).name)},
      {"algorithm", request.account.algorithm ? ordered_json(facts_of(*request.account.algorithm).name)
                                              : ordered_json(nullptr)}};
  input.update(problem_json(plan.problem));
  if (!one_type) input["dtype"] = nullptr;
  const AccountReport& account = r.kernels.front().account;
  input["pass"] = name_of(account.method.pass);
  input["splits"] =
      request.asks_for_all() ? splits_json(request.account.splits) : splits_json(account.splits);
  input["deterministic"] =
      request.asks_for_all() ? request.account.deterministic.value_or(false) : account.method.deterministic;
  input["gpu"] = or_null(request.account.gpu);
  input["q"] = or_null(request.q);
  input["k"] = or_null(request.k);
  input["v"] = or_null(request.v);
  input["do"] = or_null(request.d_o);
  const bool drawn = plan.draws();
  input["seed"] = drawn ? ordered_json(plan.tensors.random.seed) : ordered_json(nullptr);
  input["magnitude"] = drawn ? ordered_json(plan.tensors.random.magnitude) : ordered_json(nullptr);
  input["cache"] = name_of(r.how.cache);
  input["repeats"] = r.how.repeats;
  input["counters"] = name_of(r.how.counters);
  return input;
}

ordered_json device_json(const DeviceFacts& device) {
  return {{"name", device.name},
          {"compute_capability", device.compute_capability},
          {"driver", device.driver},
          {"cuda", device.runtime},
          {"memory_bytes", device.memory.value()},
          {"free_memory_bytes", device.free_memory.value()}};
}

ordered_json machine_of(const MeasureReport& r) {
  return {{"name", r.machine.name},
          {"title", r.machine.title},
          {"rates", r.machine.rates},
          {"clock_hz", r.machine.clock_hz},
          {"l2_bytes", r.machine.l2.value()}};
}

ordered_json verification_json(const KernelReport& kernel) {
  constexpr std::array<std::string_view, 2> kTensors{"O", "L"};
  const Verification& v = kernel.verification;
  return {{"max_abs_output", number_json(v.output.max_abs.size)},
          {"max_abs_lse", number_json(v.lse.max_abs.size)},
          {"tolerance_output", number_json(v.output.tolerance)},
          {"tolerance_lse", number_json(v.lse.tolerance)},
          {"rows_checked", v.sample.rows.size()},
          {"rows_wrong", v.wrong_rows()},
          {"rows_total", v.sample.of},
          {"first_wrong", first_wrong_json(kernel, kTensors)}};
}

/// null for a kernel of the forward pass.
ordered_json gradient_verification_json(const KernelReport& kernel) {
  if (!kernel.gradient_verification) return nullptr;
  constexpr std::array<std::string_view, 3> kTensors{"dQ", "dK", "dV"};
  const GradientVerification& g = *kernel.gradient_verification;
  ordered_json json;
  for (const auto& [name, comparison] :
       {std::pair{"dq", &g.dq}, std::pair{"dk", &g.dk}, std::pair{"dv", &g.dv}}) {
    json[fmt::format("max_abs_{}", name)] = number_json(comparison->max_abs.size);
    json[fmt::format("tolerance_{}", name)] = number_json(comparison->tolerance);
    json[fmt::format("rows_wrong_{}", name)] = comparison->wrong_rows;
  }
  json["query_rows_checked"] = g.queries.rows.size();
  json["query_rows_total"] = g.queries.of;
  json["key_rows_checked"] = g.keys.rows.size();
  json["key_rows_total"] = g.keys.of;
  json["first_wrong"] = first_wrong_json(kernel, kTensors);
  return json;
}

/// What the GPU was read for one figure.
ordered_json figure_json(const ByteFigure& figure) {
  return {{"figure", figure.name()},
          {"model", bytes_or_null(figure.model)},
          {"seen", bytes_or_null(figure.seen)},
          {"available", !figure.missing},
          {"difference", share_json(figure.difference())}};
}

ordered_json time_json(const KernelReport& kernel) {
  const TimeFigure& time = *kernel.time;
  const auto& simulation = kernel.account.simulation;
  const bool predicted = simulation && simulation->time;
  return {{"model_seconds", time.model ? ordered_json(time.model->value) : ordered_json(nullptr)},
          {"no_model", time.no_model},
          {"bound", predicted ? ordered_json(simulation->time->bound) : ordered_json(nullptr)},
          {"median_seconds", time.median.value},
          {"least_seconds", time.least.value},
          {"most_seconds", time.most.value},
          {"difference", share_json(time.difference())},
          {"repeats_seconds", kernel.measurement->seconds}};
}

ordered_json kernels_json(const KernelReport& kernel) {
  ordered_json list = ordered_json::array();
  for (const KernelResources& k : kernel.measurement->kernels) {
    ordered_json predicted = nullptr;
    for (const Occupancy& occupancy : kernel.account.kernels) {
      if (occupancy.kernel == k.name) predicted = occupancy.blocks_per_sm;
    }
    list.push_back({{"kernel", k.name},
                    {"registers_per_thread", k.registers_per_thread},
                    {"local_memory_bytes_per_thread", k.local_memory_per_thread.value()},
                    {"shared_memory_bytes_per_block", k.shared_memory_per_block.value()},
                    {"threads_per_block", k.threads_per_block},
                    {"blocks", k.blocks},
                    {"blocks_per_sm", k.blocks_per_sm},
                    {"model_blocks_per_sm", std::move(predicted)}});
  }
  return list;
}

ordered_json measurement_json(const KernelReport& kernel) {
  if (!kernel.measurement) return nullptr;
  const DeviceMeasurement& m = *kernel.measurement;
  ordered_json figures = ordered_json::array();
  for (const ByteFigure& figure : kernel.bytes) figures.push_back(figure_json(figure));
  ordered_json counters = ordered_json::array();
  for (const CounterReading& reading : m.counters) {
    counters.push_back(
        {{"what", reading.what}, {"metric", reading.metric}, {"value", or_null(reading.value)}});
  }
  ordered_json differences = ordered_json::array();
  for (const Difference& difference : kernel.differences) {
    differences.push_back({{"figure", difference.figure},
                           {"difference", number_json(difference.share)},
                           {"explained", difference.explained},
                           {"sentences", difference.sentences}});
  }
  return {{"bytes", name_of(m.bytes)},
          {"no_counters", m.no_counters},
          {"remedy", m.remedy},
          {"figures", std::move(figures)},
          {"time", time_json(kernel)},
          {"library_workspace_bytes", m.library_workspace.value()},
          {"input_sets", m.input_sets},
          {"sm_clock_hz", or_null(m.sm_clock_hz)},
          {"memory_clock_hz", or_null(m.memory_clock_hz)},
          {"counters", std::move(counters)},
          {"kernels", kernels_json(kernel)},
          {"differences", std::move(differences)}};
}

ordered_json kernel_json(const KernelReport& kernel) {
  const AccountReport& account = kernel.account;
  ordered_json entry{
      {"kernel", facts_of(kernel.kernel).name},
      {"algorithm", facts_of(account.method.algorithm).name},
      {"pass", name_of(account.method.pass)},
      {"dtype", name_of(kernel.plan.problem.storage)},
      {"tile_q", account.method.tiling.query_rows},
      {"tile_k", account.method.tiling.key_rows},
      {"splits", account.splits ? ordered_json(account.splits->splits) : ordered_json(nullptr)},
      {"deterministic", account.method.deterministic},
      {"launch_order", name_of(account.habits.launch_order)},
      {"key_order", name_of(account.habits.key_order)},
      {"overlap", name_of(account.habits.overlap)},
      {"verdict", name_of(kernel.verdict)},
      {"verification", verification_json(kernel)},
      {"gradient_verification", gradient_verification_json(kernel)},
      {"predicted_equals_counted", or_null(account.predicted_equals_counted())},
      {"not_simulated", account.not_simulated}};
  entry["measurement"] = measurement_json(kernel);
  return entry;
}

}  // namespace

ordered_json measure_json(const MeasureReport& r) {
  ordered_json kernels = ordered_json::array();
  for (const KernelReport& kernel : r.kernels) kernels.push_back(kernel_json(kernel));
  ordered_json left_out = ordered_json::array();
  for (const LeftOutKernel& each : r.left_out) {
    left_out.push_back({{"kernel", facts_of(each.kernel).name}, {"why", each.why}, {"failed", each.failed}});
  }
  return {{"schema", "flashsim.measure/1"},
          {"input", input_json(r)},
          {"result",
           {{"device", device_json(r.device)},
            {"date", r.date},
            {"machine", machine_of(r)},
            {"kernels", std::move(kernels)},
            {"left_out", std::move(left_out)}}}};
}

}  // namespace flashsim
