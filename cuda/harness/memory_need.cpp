#include "cuda/harness/memory_need.hpp"

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {

Bytes device_inputs(const Problem& problem) {
  const Count e(size_of(problem.storage));
  const Count columns = Count(problem.batch) * problem.head_dim * e;
  return Bytes(columns * problem.heads * problem.seq + columns * problem.kv_heads * problem.kv_seq * 2);
}

Bytes device_outputs(const DeviceTask& task) {
  const Problem& problem = task.problem;
  const Count e(size_of(problem.storage));
  const Count rows = Count(problem.batch) * problem.heads * problem.seq;
  const Count lse = rows * size_of(NumberType::fp32);
  const bool stores_scores = facts_of(facts_of(task.kernel).algorithm).stores_scores;
  return Bytes(rows * problem.head_dim * e + lse + (stores_scores ? rows * problem.kv_seq * e : Count(0)));
}

Outcome check_room(const DeviceTask& task, Bytes need, Bytes room) {
  if (!need.overflowed() && need <= room) return std::nullopt;
  return Error{
      fmt::format("{} in {} take {} on the device with {}, and {} are free", shape_text(task.problem),
                  name_of(task.problem.storage), need.overflowed() ? "more than 2⁶³ B" : size_text(need),
                  facts_of(task.kernel).name, size_text(room)),
      "take a smaller problem, or a kernel that stores no scores"};
}

}  // namespace flashsim
