#include "core/study/method_choice.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/parse.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

using nlohmann::ordered_json;

namespace {

/// A pass that the algorithm hasn't, passes or determinism that mean nothing to it.
Outcome check_passes(const AccountRequest& request, Algorithm algorithm) {
  const std::string_view name = facts_of(algorithm).name;
  const Pass pass = request.pass.value_or(Pass::forward);
  if (pass != Pass::forward && !has_backward(algorithm)) {
    std::vector<std::string_view> able;
    for (const AlgorithmFacts& facts : kAlgorithms) {
      if (has_backward(facts.algorithm)) able.push_back(facts.name);
    }
    return Error{fmt::format("--pass is {}, and {} has no backward pass", name_of(pass), name),
                 fmt::format("these have one: {}", fmt::join(able, ", "))};
  }
  if (request.passes && algorithm != Algorithm::eager) {
    return Error{fmt::format("--passes names passes of eager, and the algorithm is {}", name),
                 "--algo eager"};
  }
  if (!request.deterministic.value_or(false)) return std::nullopt;
  if (algorithm != Algorithm::flash2) {
    return Error{fmt::format("--deterministic is a choice of flash2, and the algorithm is {}", name), ""};
  }
  if (pass == Pass::forward) {
    return Error{"--deterministic says how gradients are made, and --pass is forward",
                 "--pass backward or --pass both"};
  }
  return std::nullopt;
}

}  // namespace

Outcome check_method(const AccountRequest& request, Algorithm algorithm, const Problem& problem) {
  if (auto error = check_passes(request, algorithm)) return error;
  const std::string_view name = facts_of(algorithm).name;
  if (request.splits && algorithm != Algorithm::split_kv) {
    return Error{fmt::format("--splits means nothing for {}, which doesn't split the keys", name),
                 "--algo split-kv"};
  }
  if (request.pattern && algorithm != Algorithm::block_sparse) {
    return Error{
        fmt::format("--pattern means nothing for {}, which computes every tile that the mask shows", name),
        "--algo block-sparse"};
  }
  if (!request.pattern && algorithm == Algorithm::block_sparse) {
    return Error{"--algo block-sparse needs a pattern: the blocks that are there",
                 "--pattern window:1024, --pattern strided:4 or --pattern file.json"};
  }
  if (algorithm != Algorithm::split_kv) return std::nullopt;
  const std::int64_t group = problem.heads / problem.kv_heads;
  const Count rows = Count(problem.seq) * group;
  if (rows <= Count(kLargestDimension)) return std::nullopt;
  return Error{fmt::format("{} queries of {} heads a group are more than {} packed rows", problem.seq, group,
                           kLargestDimension),
               "make the problem smaller (--seq, --heads) or the groups (--kv-heads)"};
}

Result<std::optional<SplitChoice>> choose_rest(const AccountRequest& request, const Problem& problem,
                                               const Machine& machine, Method& method) {
  if (method.algorithm == Algorithm::block_sparse && request.pattern) {
    auto pattern = BlockPattern::on_tiles(*request.pattern, problem, method.tiling);
    if (!pattern) return pattern.error();
    method.pattern = std::move(pattern).value();
  }
  if (method.algorithm != Algorithm::split_kv) return std::optional<SplitChoice>();
  const SplitChoice choice =
      choose_splits(problem, method.tiling, machine.sms, request.splits.value_or(SplitsRequest{}));
  method.splits = choice.splits;
  return std::optional(choice);
}

ordered_json splits_json(const std::optional<SplitsRequest>& splits) {
  if (!splits) return nullptr;
  return splits->count ? ordered_json(*splits->count) : ordered_json("auto");
}

ordered_json splits_json(const std::optional<SplitChoice>& choice) {
  if (!choice) return nullptr;
  return choice->automatic ? ordered_json("auto") : ordered_json(choice->splits);
}

ordered_json pattern_json(const std::optional<PatternRequest>& pattern) {
  return pattern ? pattern_json(*pattern) : ordered_json(nullptr);
}

ordered_json pattern_json(const Method& method) {
  return method.pattern != nullptr ? pattern_json(method.pattern->request()) : ordered_json(nullptr);
}

}  // namespace flashsim
