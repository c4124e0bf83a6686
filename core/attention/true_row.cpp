#include "core/attention/true_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/compensated_sum.hpp"
#include "core/problem/block_pattern.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {

bool is_masked(double score) { return score == -std::numeric_limits<double>::infinity(); }

void widen(double& largest, double value) {
  const double size = std::fabs(value);
  if (std::isfinite(size)) largest = std::max(largest, size);
}

template <class T>
void weigh(const Problem& problem, const Inputs<T>& inputs, const RowPlace& place, TrueRow& row,
           Magnitudes& magnitudes, const BlockPattern* pattern) {
  const std::int64_t visible = visible_keys(problem, place.row);
  row.scores.assign(static_cast<std::size_t>(visible), -std::numeric_limits<double>::infinity());
  const auto hidden = [&](std::int64_t key) { return pattern != nullptr && !pattern->shows(place.row, key); };
  if (inputs.scores_given()) {
    const T* given = inputs.scores.matrix(place.batch, place.head).row(place.row);
    for (std::size_t key = 0; key < row.scores.size(); ++key) {
      if (hidden(static_cast<std::int64_t>(key))) continue;
      row.scores[key] = static_cast<double>(given[key]);
      widen(magnitudes.score, row.scores[key]);
    }
  } else {
    const double scale = problem.score_scale();
    const T* q = inputs.q.matrix(place.batch, place.head).row(place.row);
    const auto k = inputs.k.matrix(place.batch, problem.kv_head_of(place.head));
    for (std::int64_t key = 0; key < visible; ++key) {
      if (hidden(key)) continue;
      const DotProduct product = dot_product(q, k.row(key), problem.head_dim);
      row.scores[static_cast<std::size_t>(key)] = scale * product.value;
      widen(magnitudes.score, scale * product.size);
    }
  }
  row.maximum = -std::numeric_limits<double>::infinity();
  row.empty = true;
  for (const double score : row.scores) {
    row.maximum = score > row.maximum ? score : row.maximum;
    row.empty = row.empty && is_masked(score);
  }
  row.weights.resize(row.scores.size());
  row.total = 0;
  if (row.empty) return;
  CompensatedSum total;
  for (std::size_t key = 0; key < row.scores.size(); ++key) {
    row.weights[key] = std::exp(row.scores[key] - row.maximum);
    total.add(row.weights[key]);
  }
  row.total = total.value();
}

template void weigh(const Problem&, const Inputs<float>&, const RowPlace&, TrueRow&, Magnitudes&,
                    const BlockPattern*);
template void weigh(const Problem&, const Inputs<double>&, const RowPlace&, TrueRow&, Magnitudes&,
                    const BlockPattern*);

}  // namespace flashsim
