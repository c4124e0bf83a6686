#include "core/problem/softmax.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace flashsim {

Outcome SoftmaxProblem::validate() const {
  for (const auto& [name, value] : {std::pair{"rows", rows}, {"columns", columns}}) {
    if (const auto checked = check_dimension(name, value); !checked) return checked.error();
  }
  if (!top_k) return std::nullopt;
  if (const auto checked = check_dimension("top-k", *top_k); !checked) return checked.error();
  if (*top_k > columns) {
    return Error{fmt::format("top-k is {}, and a row has {} columns", *top_k, columns), ""};
  }
  return std::nullopt;
}

Result<RowsOnChip> rows_on_chip(const SoftmaxProblem& problem, Bytes shared_memory) {
  const std::int64_t elements = shared_memory.value() / size_of(problem.storage);
  if (elements < 1) {
    return Error{fmt::format("{} B of shared memory don't hold one {} element", shared_memory.value(),
                             name_of(problem.storage)),
                 ""};
  }
  return RowsOnChip{.rows = std::min(elements / problem.columns, problem.rows),
                    .columns = std::min(elements, problem.columns)};
}

}  // namespace flashsim
