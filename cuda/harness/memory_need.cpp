#include "cuda/harness/memory_need.hpp"

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {

namespace {

Count query_rows(const Problem& p) { return Count(p.batch) * p.heads * p.seq; }
Count query_tensor(const Problem& p) { return query_rows(p) * p.head_dim * size_of(p.storage); }
Count key_tensor(const Problem& p) {
  return Count(p.batch) * p.kv_heads * p.kv_seq * p.head_dim * size_of(p.storage);
}
/// A number for each query row in the type that kernels sum in.
Count statistic(const Problem& p) { return query_rows(p) * size_of(NumberType::fp32); }

/// dQ's sum lies in whole tiles (cuda/ladder/06_flash_backward.cuh).
Count gradient_sum(const DeviceTask& task) {
  const Problem packed = packed_heads(task.problem);
  const std::int64_t tile = task.method.tiling.query_rows;
  const Count rows = Count(packed.batch) * packed.heads * ((packed.seq - 1) / tile + 1) * tile;
  return rows * (packed.head_dim <= 64 ? 64 : 128) * size_of(NumberType::fp32);
}

Count gradient_outputs(const DeviceTask& task) {
  const Problem& p = task.problem;
  const Count gradients = query_tensor(p) + key_tensor(p) * 2;
  return gradients + statistic(p) + (task.method.deterministic ? Count(0) : gradient_sum(task));
}

}  // namespace

Bytes device_inputs(const DeviceTask& task) {
  const Problem& p = task.problem;
  const Count forward = query_tensor(p) + key_tensor(p) * 2;
  if (facts_of(task.kernel).pass == Pass::forward) return Bytes(forward);
  return Bytes(forward + query_tensor(p) * 2 + statistic(p));
}

Bytes device_outputs(const DeviceTask& task) {
  if (facts_of(task.kernel).pass != Pass::forward) return Bytes(gradient_outputs(task));
  const Problem& p = task.problem;
  Count bytes = query_tensor(p) + statistic(p);
  if (facts_of(facts_of(task.kernel).algorithm).stores_scores) {
    bytes += query_rows(p) * p.kv_seq * size_of(p.storage);
  }
  if (task.method.splits > 1) bytes += statistic(p) * (Count(p.head_dim) + 1) * task.method.splits;
  return Bytes(bytes);
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
