#include "core/study/tensor_source.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/npy.hpp"

namespace flashsim {
namespace {

/// A size that the tensors tell: what the option calls it, and which of them it is told by.
struct ToldSize {
  const char* option;
  std::optional<std::int64_t> AccountRequest::*asked;
  std::int64_t told;
  std::string by;
};

Outcome check_sizes(const AccountRequest& request, const std::vector<ToldSize>& sizes) {
  for (const ToldSize& size : sizes) {
    const auto& asked = request.*size.asked;
    if (asked && *asked != size.told) {
      return Error{fmt::format("{} is {}, and {} has {}", size.option, *asked, size.by, size.told),
                   fmt::format("leave {} out, and --model: the tensors tell their sizes", size.option)};
    }
  }
  return std::nullopt;
}

Result<ToldProblem> told_by_scenario(const AccountRequest& request, const Scenario& scenario) {
  Problem problem = scenario.problem;
  const std::string by = fmt::format("scenario {}", scenario.source);
  const auto error = check_sizes(request, {{"--batch", &AccountRequest::batch, problem.batch, by},
                                           {"--heads", &AccountRequest::heads, problem.heads, by},
                                           {"--kv-heads", &AccountRequest::kv_heads, problem.kv_heads, by},
                                           {"--seq", &AccountRequest::seq, problem.seq, by},
                                           {"--kv-seq", &AccountRequest::kv_seq, problem.kv_seq, by},
                                           {"--head-dim", &AccountRequest::head_dim, problem.head_dim, by}});
  if (error) return *error;
  const NumberType type = problem.storage;
  problem.causal = request.causal.value_or(problem.causal);
  problem.alignment = request.alignment.value_or(problem.alignment);
  problem.storage = request.dtype.value_or(problem.storage);
  return ToldProblem{.problem = problem, .type = type};
}

std::string quoted(const std::string& path) { return fmt::format("'{}'", path); }

/// "'q.npy' is [2, 4, 10, 8]"
std::string shape_of(const std::string& path, const NpyHeader& header) {
  return fmt::format("'{}' is [{}]", path, fmt::join(header.shape, ", "));
}

Result<ToldProblem> told_by_files(AccountRequest request, const NpyFiles& files) {
  const auto q = read_npy_header(files.q);
  if (!q) return q.error();
  const auto k = read_npy_header(files.k);
  if (!k) return k.error();
  const auto v = read_npy_header(files.v);
  if (!v) return v.error();
  if (k->sizes != v->sizes) {
    return Error{
        fmt::format("{} and {}: K and V must have one shape", shape_of(files.k, *k), shape_of(files.v, *v)),
        ""};
  }
  const auto [batch, heads, seq, head_dim] = q->sizes;
  const auto [kv_batch, kv_heads, kv_seq, kv_head_dim] = k->sizes;
  if (batch != kv_batch || head_dim != kv_head_dim) {
    return Error{fmt::format("{} and {}: batch and head dimension must agree", shape_of(files.q, *q),
                             shape_of(files.k, *k)),
                 ""};
  }
  const auto error =
      check_sizes(request, {{"--batch", &AccountRequest::batch, batch, quoted(files.q)},
                            {"--heads", &AccountRequest::heads, heads, quoted(files.q)},
                            {"--kv-heads", &AccountRequest::kv_heads, kv_heads, quoted(files.k)},
                            {"--seq", &AccountRequest::seq, seq, quoted(files.q)},
                            {"--kv-seq", &AccountRequest::kv_seq, kv_seq, quoted(files.k)},
                            {"--head-dim", &AccountRequest::head_dim, head_dim, quoted(files.q)}});
  if (error) return *error;
  request.batch = batch;
  request.heads = heads;
  request.kv_heads = kv_heads;
  request.seq = seq;
  request.kv_seq = kv_seq;
  request.head_dim = head_dim;
  const auto problem = resolve_problem(request);
  if (!problem) return problem.error();
  const auto is_double = [](const NpyHeader& header) { return header.type == NumberType::fp64; };
  const bool wide = is_double(*q) || is_double(*k) || is_double(*v);
  return ToldProblem{.problem = *problem, .type = wide ? NumberType::fp64 : NumberType::fp32};
}

}  // namespace

Result<ToldProblem> told_problem(const AccountRequest& request, const TensorSource& source) {
  if (source.scenario) return told_by_scenario(request, *source.scenario);
  if (source.files) return told_by_files(request, *source.files);
  const auto problem = resolve_problem(request);
  if (!problem) return problem.error();
  return ToldProblem{.problem = *problem, .type = std::nullopt};
}

Outcome check_output_gradient(const std::string& path, const Problem& problem) {
  const auto header = read_npy_header(path);
  if (!header) return header.error();
  const std::array<std::int64_t, 4> wanted{problem.batch, problem.heads, problem.seq, problem.head_dim};
  if (header->sizes == wanted) return std::nullopt;
  return Error{fmt::format("{}, and dO must have the shape of O: [{}]", shape_of(path, *header),
                           fmt::join(wanted, ", ")),
               ""};
}

}  // namespace flashsim
