// Where the tensors of a run come from (a scenario, .npy files, a seed), and what they tell of the problem.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/problem/problem.hpp"
#include "core/study/random_tensors.hpp"
#include "core/study/request.hpp"
#include "core/study/scenario.hpp"

namespace flashsim {

/// Paths of .npy files.
struct NpyFiles {
  std::string q, k, v;
};

/// Q, K and V are a scenario's or the files' where there is one, and drawn otherwise; dO is a file's or
/// drawn.
struct TensorSource {
  std::optional<Scenario> scenario;
  std::optional<NpyFiles> files;
  std::optional<std::string> d_o;  ///< a path
  RandomTensors random;            ///< of what is drawn, in the order Q, K, V, dO

  [[nodiscard]] bool qkv_drawn() const { return scenario ? scenario->random.has_value() : !files; }
  [[nodiscard]] bool scores_given() const { return scenario && scenario->inputs.scores_given(); }
};

/// What a source tells of the problem.
struct ToldProblem {
  Problem problem;
  std::optional<NumberType> type;  ///< in which the numbers are given, or are to be computed
};

/// The problem that `request` asks for and `source` tells. Errors: files that can't be read or don't fit
/// together, and a size that the request and the tensors disagree on. The storage type is the request's.
Result<ToldProblem> told_problem(const AccountRequest& request, const TensorSource& source);

/// What keeps dO's file from being the gradient of the output of `problem`.
Outcome check_output_gradient(const std::string& path, const Problem& problem);

}  // namespace flashsim
