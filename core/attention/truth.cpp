#include "core/attention/truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/attention/compensated_sum.hpp"
#include "core/attention/true_row.hpp"
#include "core/base/parallel.hpp"
#include "core/problem/block_pattern.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

/// What one thread needs, kept from row to row.
struct Worker {
  explicit Worker(const Problem& problem) : sums(problem.head_dim), sizes(problem.head_dim) {}
  TrueRow row;
  CompensatedSums sums;
  SumsOfSizes sizes;
  Magnitudes magnitudes;
};

/// O and L of one row; they are 0 at first.
template <class T>
void attend_row(const Problem& problem, const Inputs<T>& inputs, const BlockPattern* pattern,
                const RowPlace& place, Worker& worker, double* o, double& lse) {
  TrueRow& row = worker.row;
  Magnitudes& magnitudes = worker.magnitudes;
  weigh(problem, inputs, place, row, magnitudes, pattern);
  if (row.empty) {
    lse = -std::numeric_limits<double>::infinity();
    return;
  }
  lse = row.maximum + std::log(row.total);
  const auto v = inputs.v.matrix(place.batch, problem.kv_head_of(place.head));
  worker.sums.clear();
  worker.sizes.clear();
  for (std::size_t key = 0; key < row.weights.size(); ++key) {
    if (is_masked(row.scores[key])) continue;
    const T* value = v.row(static_cast<std::int64_t>(key));
    worker.sums.add(row.weights[key], value);
    worker.sizes.add(row.weights[key], value);
  }
  for (std::size_t x = 0; x < worker.sums.size(); ++x) {
    o[x] = worker.sums.value(x) / row.total;
    widen(magnitudes.output, o[x]);
    widen(magnitudes.summed_value, worker.sizes.values()[x] / row.total);
  }
}

/// max |V| over the keys that a row of the sample sees. Every query sees a prefix of the keys, of which a
/// pattern hides some.
template <class T>
double largest_seen(const Problem& problem, const Tensor4<T>& values, const std::vector<RowPlace>& rows,
                    const BlockPattern* pattern) {
  const std::int64_t kv_heads = problem.batch * problem.kv_heads;
  std::vector<std::vector<bool>> seen(static_cast<std::size_t>(kv_heads));
  for (const RowPlace& place : rows) {
    auto& keys =
        seen[static_cast<std::size_t>(place.batch * problem.kv_heads + problem.kv_head_of(place.head))];
    const std::int64_t visible = visible_keys(problem, place.row);
    if (static_cast<std::int64_t>(keys.size()) < visible) {
      keys.resize(static_cast<std::size_t>(visible), pattern == nullptr);
    }
    for (std::int64_t key = 0; pattern != nullptr && key < visible; ++key) {
      if (pattern->shows(place.row, key)) keys[static_cast<std::size_t>(key)] = true;
    }
  }
  double largest = 0;
  for (std::int64_t head = 0; head < kv_heads; ++head) {
    const auto& keys = seen[static_cast<std::size_t>(head)];
    const auto v = values.matrix(head / problem.kv_heads, head % problem.kv_heads);
    for (std::size_t key = 0; key < keys.size(); ++key) {
      if (!keys[key]) continue;
      const T* row = v.row(static_cast<std::int64_t>(key));
      for (std::int64_t x = 0; x < problem.head_dim; ++x) widen(largest, static_cast<double>(row[x]));
    }
  }
  return largest;
}

}  // namespace

template <class T>
Truth truth_of(const Problem& problem, const Inputs<T>& inputs, RowSample sample, int threads,
               const BlockPattern* pattern) {
  const auto count = static_cast<std::int64_t>(sample.rows.size());
  Truth truth;
  if (sample.whole()) {
    truth.outputs = {Tensor4<double>(problem.batch, problem.heads, problem.seq, problem.head_dim),
                     Tensor4<double>(problem.batch, problem.heads, problem.seq, 1)};
  } else {
    truth.outputs = {Tensor4<double>(1, 1, count, problem.head_dim), Tensor4<double>(1, 1, count, 1)};
  }
  std::vector<Worker> workers(static_cast<std::size_t>(std::max(threads, 1)), Worker(problem));
  for_each_index(threads, count, [&](int worker, std::int64_t index) {
    attend_row(problem, inputs, pattern, sample.rows[static_cast<std::size_t>(index)],
               workers[static_cast<std::size_t>(worker)],
               truth.outputs.o.data().data() + index * problem.head_dim,
               truth.outputs.lse.data()[static_cast<std::size_t>(index)]);
  });
  for (const Worker& worker : workers) truth.magnitudes.widen(worker.magnitudes);
  truth.magnitudes.value = largest_seen(problem, inputs.v, sample.rows, pattern);
  truth.sample = std::move(sample);
  return truth;
}

template Truth truth_of(const Problem&, const Inputs<float>&, RowSample, int, const BlockPattern*);
template Truth truth_of(const Problem&, const Inputs<double>&, RowSample, int, const BlockPattern*);

}  // namespace flashsim
