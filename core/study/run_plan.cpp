#include "core/study/run_plan.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/attention/attend.hpp"
#include "core/problem/machine.hpp"
#include "core/study/kernel_choice.hpp"
#include "core/study/method_choice.hpp"
#include "core/study/run_memory.hpp"

namespace flashsim {
namespace {

/// What the tensors come from, and that no option asks for something else.
Result<TensorSource> source_of(const RunRequest& request) {
  TensorSource source{
      .scenario = request.scenario, .files = std::nullopt, .d_o = request.d_o, .random = kDefaultRandom};
  const std::pair<const char*, const std::optional<std::string>*> files[]{
      {"--q", &request.q}, {"--k", &request.k}, {"--v", &request.v}};
  const auto is_given = [](const auto& file) { return file.second->has_value(); };
  const auto given = std::find_if(std::begin(files), std::end(files), is_given);
  if (given != std::end(files)) {
    const auto missing = std::find_if_not(std::begin(files), std::end(files), is_given);
    if (missing != std::end(files)) {
      return Error{
          fmt::format("{} is '{}', and {} is missing", given->first, **given->second, missing->first),
          "give --q, --k and --v, or none of them"};
    }
    if (source.scenario) {
      return Error{fmt::format("give a scenario or files, not both: {} and {} '{}'", source.scenario->source,
                               given->first, **given->second),
                   ""};
    }
    source.files = NpyFiles{*request.q, *request.k, *request.v};
  }
  if (request.d_o && !request.backward) {
    return Error{fmt::format("--do is '{}', and without --backward nothing is done with it", *request.d_o),
                 "add --backward"};
  }
  const bool draws = source.qkv_drawn() || (request.backward && !request.d_o);
  if (request.seed && !draws) {
    return Error{fmt::format("--seed is {}, and nothing is drawn: the tensors are given", *request.seed), ""};
  }
  if (request.magnitude && !draws && !source.scenario) {
    return Error{
        fmt::format("--magnitude is {}, and nothing is drawn: the tensors are given", *request.magnitude),
        ""};
  }
  if (source.scenario) {
    Scenario& scenario = *source.scenario;
    if (scenario.random && request.seed) scenario.random->seed = *request.seed;
    if (request.magnitude) scenario.set_magnitude(*request.magnitude);
    source.random = scenario.random.value_or(RandomTensors{.seed = request.seed.value_or(kDefaultRandom.seed),
                                                           .magnitude = kDefaultRandom.magnitude});
  } else {
    source.random = {.seed = request.seed.value_or(kDefaultRandom.seed),
                     .magnitude = request.magnitude.value_or(kDefaultRandom.magnitude)};
  }
  return source;
}

/// The kernel of a run on a device that goes forward.
Outcome choose_forward_kernel(const RunRequest& request, RunPlan& plan) {
  if (request.kernel && facts_of(*request.kernel).pass == Pass::backward) {
    return Error{
        fmt::format("{} makes gradients, and --backward isn't given", facts_of(*request.kernel).name),
        "add --backward"};
  }
  const auto kernel = choose_kernel(
      request.kernel,
      {.algorithm = request.account.algorithm, .pass = Pass::forward, .storage = request.account.dtype});
  if (!kernel) return kernel.error();
  plan.kernel = *kernel;
  return std::nullopt;
}

/// The kernel that makes the gradients, and the one whose O and L it is given.
Outcome choose_both_kernels(const RunRequest& request, RunPlan& plan) {
  std::optional<Kernel> named = request.kernel;
  if (named && facts_of(*named).pass == Pass::forward) {
    if (*named != kSavesForBackward) {
      return Error{fmt::format("--kernel is {}, and gradients are made of the O and L of {}",
                               facts_of(*named).name, facts_of(kSavesForBackward).name),
                   "leave --kernel out"};
    }
    named.reset();
  }
  const auto kernel = choose_kernel(
      named,
      {.algorithm = request.account.algorithm, .pass = Pass::backward, .storage = request.account.dtype});
  if (!kernel) return kernel.error();
  plan.kernel = kSavesForBackward;
  plan.backward_kernel = *kernel;
  return std::nullopt;
}

/// The algorithm and, on a device, its kernel. Errors there: what no kernel does.
Outcome choose_executor(const RunRequest& request, RunPlan& plan) {
  if (request.device.value_or(RunDevice::cpu) == RunDevice::cpu) {
    plan.algorithm = request.account.algorithm.value_or(Algorithm::flash2);
    if (!request.kernel) return std::nullopt;
    return Error{fmt::format("--kernel is {}, and the run is on the CPU", facts_of(*request.kernel).name),
                 "--device cuda"};
  }
  if (auto error =
          request.backward ? choose_both_kernels(request, plan) : choose_forward_kernel(request, plan)) {
    return error;
  }
  plan.algorithm = facts_of(*plan.kernel).algorithm;
  constexpr const char* kOnCpu = "--device cpu does it";
  if (request.compute == NumberType::fp64)
    return Error{"--compute is f64, and kernels compute in f32", kOnCpu};
  if (request.accumulate_in_storage.value_or(false)) {
    return Error{"--accumulate is storage, and kernels sum in f32", kOnCpu};
  }
  if (request.account.shared_memory) {
    return Error{"--sram chooses tiles, and a kernel works on its own", "leave --sram out"};
  }
  return std::nullopt;
}

/// What the kernels don't take.
Outcome check_kernels(const RunPlan& plan, const Switches& switches) {
  if (plan.backward_kernel) {
    if (auto error = check_kernel(*plan.backward_kernel, plan.problem, switches)) return error;
  }
  return check_kernel(*plan.kernel, plan.problem, switches);
}

/// The type that a kernel is run in where none is asked for: fp32 where it takes it.
NumberType usual_type(Kernel kernel) {
  const auto types = facts_of(kernel).storage;
  const bool takes_fp32 = std::find(types.begin(), types.end(), NumberType::fp32) != types.end();
  return takes_fp32 ? NumberType::fp32 : types.front();
}

/// The compute type, and in the problem the storage type.
Outcome choose_types(const RunRequest& request, const std::optional<NumberType>& told, RunPlan& plan) {
  if (plan.kernel) {
    plan.compute = NumberType::fp32;
    plan.problem.storage = request.account.dtype.value_or(usual_type(*plan.kernel));
    if (!plan.tensors.scores_given()) return check_kernels(plan, {});
    return Error{fmt::format("a kernel needs Q and K, and scenario {} gives scores in their place",
                             plan.tensors.scenario->source),
                 "--device cpu does it"};
  }
  const std::optional<NumberType> storage = request.account.dtype;
  if (storage == NumberType::fp8) {
    return Error{"--dtype is fp8, and nothing computes in it", "fp16, bf16, fp32 or fp64"};
  }
  const NumberType otherwise =
      storage == NumberType::fp64 ? NumberType::fp64 : told.value_or(NumberType::fp32);
  plan.compute = request.compute.value_or(otherwise);
  plan.problem.storage = storage.value_or(plan.compute);
  if (size_of(plan.problem.storage) > size_of(plan.compute)) {
    return Error{fmt::format("--dtype is {}, which is wider than the compute type, {}",
                             name_of(plan.problem.storage), name_of(plan.compute)),
                 "--compute f64"};
  }
  return std::nullopt;
}

Outcome choose_switches(const RunRequest& request, RunPlan& plan) {
  Switches& switches = plan.switches;
  if (plan.tensors.scenario) switches = plan.tensors.scenario->switches;
  if (request.no_subtract_max) switches.subtract_max = false;
  if (request.no_rescale) switches.rescale = false;
  switches.fault = request.fault.value_or(Fault::none);
  switches.accumulate_in_storage = request.accumulate_in_storage.value_or(false);
  if (switches.accumulate_in_storage && plan.problem.storage == plan.compute) {
    return Error{
        fmt::format("--accumulate storage needs a storage type that is narrower than the compute type, "
                    "and both are {}",
                    name_of(plan.compute)),
        "--dtype fp16 or --dtype bf16"};
  }
  return check_switches(switches, plan.algorithm);
}

/// A kernel's own.
Outcome take_kernels_tiles(const RunRequest& request, RunPlan& plan) {
  if (auto error = check_kernels(plan, plan.switches)) return error;
  if (auto error = check_kernel_tiles(*plan.kernel, plan.problem, request.account.tiles)) return error;
  plan.tiling = method_of(*plan.kernel, plan.problem).tiling;
  return std::nullopt;
}

/// The account's choice. What is explicit needn't fit the GPU, only an explicit limit.
Outcome choose_tiles(const RunRequest& request, const Machine& machine, RunPlan& plan) {
  plan.shared_memory = request.account.shared_memory;
  TilingRequest tiles = request.account.tiles;
  if (plan.tensors.scenario) {
    const Tiling own = plan.tensors.scenario->tiling;
    tiles = {tiles.query_rows.value_or(own.query_rows), tiles.key_rows.value_or(own.key_rows)};
  }
  const auto chosen = resolve_tiling(plan.algorithm, plan.problem, tiles,
                                     plan.shared_memory.value_or(machine.shared_memory_per_block),
                                     "the limit given by --sram");
  if (chosen) {
    plan.tiling = *chosen;
  } else if (plan.shared_memory) {
    return chosen.error();
  } else {
    plan.tiling = {tiles.query_rows.value_or(Tiling{}.query_rows),
                   tiles.key_rows.value_or(Tiling{}.key_rows)};
  }
  return std::nullopt;
}

/// The tiles, and what the algorithm leaves open beside them.
Outcome choose_method(const RunRequest& request, RunPlan& plan) {
  plan.gpu_given = request.account.gpu.has_value();
  plan.gpu = request.account.gpu.value_or("a100");
  const auto machine = find_machine(plan.gpu);
  if (!machine) return machine.error();
  if (auto error = plan.kernel ? take_kernels_tiles(request, plan) : choose_tiles(request, *machine, plan)) {
    return error;
  }
  Method method{.algorithm = plan.algorithm, .tiling = plan.tiling};
  const auto splits = choose_rest(request.account, plan.problem, *machine, method);
  if (!splits) return splits.error();
  plan.splits = *splits;
  plan.pattern = method.pattern;
  return std::nullopt;
}

/// How gradients are made: a device alone has the choice.
Outcome choose_gradients(const RunRequest& request, RunPlan& plan) {
  plan.backward = request.backward;
  plan.deterministic = request.account.deterministic.value_or(false);
  if (!plan.deterministic) return std::nullopt;
  if (!plan.backward) {
    return Error{"--deterministic says how gradients are made, and --backward isn't given", "add --backward"};
  }
  if (plan.kernel) return std::nullopt;
  return Error{
      "--deterministic is a choice of kernels, and the run is on the CPU, whose bits are always the same",
      "leave --deterministic out, or --device cuda"};
}

Outcome check_backward(const RunPlan& plan) {
  if (!plan.backward) return std::nullopt;
  const AlgorithmFacts& facts = facts_of(plan.algorithm);
  if (!executes_backward(plan.algorithm)) {
    return Error{fmt::format("--backward is there for standard and flash2, not for {}", facts.name), ""};
  }
  if (plan.tensors.scores_given()) {
    return Error{fmt::format("--backward needs Q and K, and scenario {} gives scores in their place",
                             plan.tensors.scenario->source),
                 ""};
  }
  return plan.tensors.d_o ? check_output_gradient(*plan.tensors.d_o, plan.problem) : std::nullopt;
}

/// Eager's passes, as far as they can be executed.
Outcome choose_passes(const RunRequest& request, RunPlan& plan) {
  plan.passes = resolve_passes(request.account.passes, plan.problem);
  if (plan.passes.dropout) {
    return Error{"--passes names dropout, and a run has no random mask to drop by", "leave dropout out"};
  }
  if (plan.passes.padding_mask) {
    return Error{"--passes names mask, and the problem isn't causal: a run has no mask of padded keys",
                 "leave mask out, or --causal"};
  }
  return std::nullopt;
}

/// What a request asks of the forward pass.
AccountRequest forward_of(AccountRequest request) {
  request.pass.reset();
  request.deterministic.reset();
  return request;
}

/// The scenario as this run plays it.
void lay_over_scenario(RunPlan& plan) {
  if (!plan.tensors.scenario) return;
  Scenario& scenario = *plan.tensors.scenario;
  scenario.problem = plan.problem;
  scenario.problem.storage = plan.compute;
  scenario.tiling = plan.tiling;
  scenario.switches.subtract_max = plan.switches.subtract_max;
  scenario.switches.rescale = plan.switches.rescale;
}

}  // namespace

Method RunPlan::method(Pass pass) const {
  const std::optional<Kernel> by = pass == Pass::backward ? backward_kernel : kernel;
  Method method{.algorithm = algorithm, .tiling = tiling, .passes = passes, .pattern = pattern};
  if (by) method = method_of(*by, problem);
  method.pass = pass;
  method.deterministic = pass == Pass::backward && deterministic;
  method.splits = splits ? splits->splits : 1;
  return method;
}

DeviceTask RunPlan::task(Pass pass) const {
  return {.kernel = pass == Pass::backward ? *backward_kernel : *kernel,
          .problem = problem,
          .switches = switches,
          .method = method(pass)};
}

Result<RunPlan> plan_run(const RunRequest& request) {
  RunPlan plan;
  if (auto error = choose_executor(request, plan)) return *error;
  if (auto error = choose_gradients(request, plan)) return *error;
  auto source = source_of(request);
  if (!source) return source.error();
  plan.tensors = std::move(source).value();
  const auto told = told_problem(request.account, plan.tensors);
  if (!told) return told.error();
  plan.problem = told->problem;
  if (request.scale) {
    if (plan.tensors.scores_given()) {
      return Error{fmt::format("--scale is {}, and scenario {} gives scores, which are taken as they are",
                               *request.scale, plan.tensors.scenario->source),
                   ""};
    }
    plan.problem.scale = request.scale;
  }
  if (auto error = choose_types(request, told->type, plan)) return *error;
  if (auto error = choose_switches(request, plan)) return *error;
  if (auto error = check_method(forward_of(request.account), plan.algorithm, plan.problem)) return *error;
  if (auto error = choose_method(request, plan)) return *error;
  if (auto error = check_backward(plan)) return *error;
  if (auto error = choose_passes(request, plan)) return *error;
  const auto processors = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  plan.threads =
      request.threads.value_or(static_cast<int>(std::clamp<std::int64_t>(processors, 1, kMostThreads)));
  lay_over_scenario(plan);
  if (auto error = check_memory(plan, physical_memory())) return *error;
  return plan;
}

}  // namespace flashsim
