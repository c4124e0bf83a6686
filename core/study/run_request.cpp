// What is asked of a run, from and to JSON, and one request laid over another.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/nearest.hpp"
#include "core/study/method_choice.hpp"
#include "core/study/run_plan.hpp"
#include "core/study/tensor_keys.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "flashsim.run/1";

template <class T>
void fill(std::optional<T>& over, const std::optional<T>& under) {
  if (!over) over = under;
}

void forget_sizes(AccountRequest& account) {
  for (auto* size : {&account.batch, &account.heads, &account.kv_heads, &account.seq, &account.kv_seq,
                     &account.head_dim}) {
    size->reset();
  }
  account.tiles = {};
}

bool is_default_scale(const RunRequest& request) {
  return request.scale && request.account.head_dim &&
         *request.scale == 1.0 / std::sqrt(static_cast<double>(*request.account.head_dim));
}

/// Whether anything of the run is drawn.
bool draws(const RunRequest& request) {
  const bool given = request.q || (request.scenario && !request.scenario->random);
  return !given || (request.backward && !request.d_o);
}

Result<NumberType> compute_type_named(const std::string& name) {
  if (name == "fp32") return NumberType::fp32;
  if (name == "fp64") return NumberType::fp64;
  return unknown_name("compute type", name, {"fp32", "fp64"});
}

Result<bool> accumulation_named(const std::string& name) {
  if (name == "compute") return false;
  if (name == "storage") return true;
  return unknown_name("accumulation", name, {"compute", "storage"});
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

Result<RunDevice> run_device_named(const std::string& name) {
  if (name == name_of(RunDevice::cpu)) return RunDevice::cpu;
  if (name == name_of(RunDevice::cuda)) return RunDevice::cuda;
  return unknown_name("device", name, {"cpu", "cuda"});
}

RunRequest laid_over(RunRequest over, RunRequest under) {
  const bool other_tensors = over.scenario || over.q || over.k || over.v;
  if ((over.account.head_dim || other_tensors) && is_default_scale(under)) under.scale.reset();
  if (other_tensors) {
    under.scenario.reset();
    for (auto* file : {&under.q, &under.k, &under.v}) file->reset();
    under.seed.reset();
    under.magnitude.reset();
    forget_sizes(under.account);
  }
  // The kernel is that of a device and of an algorithm, and its tiles are its own.
  if (over.device == RunDevice::cpu || over.account.algorithm) under.kernel.reset();
  if (over.device == RunDevice::cpu) under.account.deterministic.reset();
  if (over.kernel && over.kernel != under.kernel) {
    under.account.algorithm.reset();
    under.account.splits.reset();
  }
  if (over.device || over.kernel) under.account.tiles = {};
  // The storage type followed the compute type, or that the storage type.
  if (under.compute == under.account.dtype) {
    if (over.compute && !over.account.dtype) {
      under.account.dtype.reset();
      under.account.tiles = {};
    }
    if (over.account.dtype && !over.compute) under.compute.reset();
  }
  over.account = laid_over(over.account, under.account);
  fill(over.scale, under.scale);
  fill(over.compute, under.compute);
  if (under.scenario) over.scenario = std::move(under.scenario);
  fill(over.q, under.q);
  fill(over.k, under.k);
  fill(over.v, under.v);
  fill(over.d_o, under.d_o);
  fill(over.device, under.device);
  fill(over.kernel, under.kernel);
  over.backward = over.backward || under.backward;
  if (draws(over)) {
    fill(over.seed, under.seed);
    fill(over.magnitude, under.magnitude);
  }
  over.no_subtract_max = over.no_subtract_max || under.no_subtract_max;
  over.no_rescale = over.no_rescale || under.no_rescale;
  fill(over.fault, under.fault);
  fill(over.accumulate_in_storage, under.accumulate_in_storage);
  fill(over.threads, under.threads);
  return over;
}

Result<RunRequest> read_run_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {kSchema});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  RunRequest request;
  request.account = read_request_keys(reader);
  request.account.deterministic = reader.flag("deterministic");
  request.scale = reader.number("scale");
  request.compute = reader.named<NumberType>("compute", compute_type_named);
  if (const auto* scenario = reader.object("scenario")) {
    auto read = scenario_from_json(*scenario, reader.path_of("scenario"));
    if (read) {
      request.scenario = std::move(read).value();
    } else {
      reader.fail(read.error());
    }
  }
  read_tensor_keys(reader, request);
  request.device = reader.named<RunDevice>("device", run_device_named);
  request.kernel = reader.named<Kernel>("kernel", kernel_named);
  request.backward = reader.flag("backward").value_or(false);
  request.no_subtract_max = !reader.flag("subtract_max").value_or(true);
  request.no_rescale = !reader.flag("rescale").value_or(true);
  request.fault = reader.named<Fault>("fault", fault_named);
  request.accumulate_in_storage = reader.named<bool>("accumulate", accumulation_named);
  if (const auto threads = reader.integer("threads")) {
    if (*threads < 1 || *threads > kMostThreads) {
      reader.fail({fmt::format("{} must be a whole number from 1 to {}, not {}", reader.path_of("threads"),
                               kMostThreads, *threads),
                   ""});
    }
    request.threads = static_cast<int>(std::clamp<std::int64_t>(*threads, 1, kMostThreads));
  }
  if (auto error = reader.finish()) return *error;
  return request;
}

ordered_json run_input_json(const RunPlan& plan) {
  const TensorSource& tensors = plan.tensors;
  ordered_json input{
      {"algorithm", facts_of(plan.algorithm).name},
      {"backward", plan.backward},
      {"deterministic", plan.deterministic},
      {"device", name_of(plan.kernel ? RunDevice::cuda : RunDevice::cpu)},
      {"kernel", plan.kernel ? ordered_json(facts_of(plan.backward_kernel.value_or(*plan.kernel)).name)
                             : ordered_json(nullptr)}};
  input.update(problem_json(plan.problem));
  // Given scores are taken as they are.
  input["scale"] = tensors.scores_given() ? ordered_json(nullptr) : ordered_json(plan.problem.score_scale());
  input["compute"] = name_of(plan.compute);
  input["passes"] = plan.algorithm == Algorithm::eager
                        ? ordered_json(names_of(listed(plan.problem, plan.method())))
                        : ordered_json(nullptr);
  input["tile_q"] = plan.tiling.query_rows;
  input["tile_k"] = plan.tiling.key_rows;
  input["sram_bytes"] =
      plan.shared_memory ? ordered_json(plan.shared_memory->value()) : ordered_json(nullptr);
  input["gpu"] = plan.gpu;
  input["splits"] = splits_json(plan.splits);
  input["pattern"] = pattern_json(plan.method());
  input["scenario"] = tensors.scenario ? scenario_json(*tensors.scenario) : ordered_json(nullptr);
  input["q"] = tensors.files ? ordered_json(tensors.files->q) : ordered_json(nullptr);
  input["k"] = tensors.files ? ordered_json(tensors.files->k) : ordered_json(nullptr);
  input["v"] = tensors.files ? ordered_json(tensors.files->v) : ordered_json(nullptr);
  input["do"] = or_null(tensors.d_o);
  // A scenario's own numbers stand in it, its magnitude in them.
  const bool seeded = plan.draws() && !(tensors.scenario && tensors.scenario->random);
  input["seed"] = seeded ? ordered_json(tensors.random.seed) : ordered_json(nullptr);
  input["magnitude"] =
      seeded && !tensors.scenario ? ordered_json(tensors.random.magnitude) : ordered_json(nullptr);
  input["subtract_max"] = plan.switches.subtract_max;
  input["rescale"] = plan.switches.rescale;
  input["fault"] =
      plan.switches.fault == Fault::none ? ordered_json(nullptr) : ordered_json(name_of(plan.switches.fault));
  input["accumulate"] = plan.switches.accumulate_in_storage ? "storage" : "compute";
  input["threads"] = plan.threads;
  return input;
}

}  // namespace flashsim
