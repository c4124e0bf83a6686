#include "core/attention/true_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/attention/compensated_sum.hpp"
#include "core/attention/true_row.hpp"
#include "core/base/parallel.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

/// What a key needs to know of a query: P_ij = exp(s − maximum) / total, and D.
struct QueryFacts {
  double maximum = 0;
  double total = 0;
  double d = 0;
  bool empty = true;
};

/// A query row that is needed: for its dQ, for the keys that it sees, or for both.
struct NeededRow {
  RowPlace place;
  std::int64_t dq_row = -1;  ///< of the result, or −1
};

/// A sum with its magnitudes: Σ dS_ij K_jx, Σ |dS_ij K_jx| and Σ P_ij |K_jx|, or the like.
struct GradientSums {
  explicit GradientSums(std::int64_t d) : sums(d), terms(d), weights(d) {}
  void clear() {
    sums.clear();
    terms.clear();
    weights.clear();
  }
  CompensatedSums sums;
  SumsOfSizes terms, weights;
};

struct Worker {
  explicit Worker(const Problem& problem) : ds(problem.head_dim), pg(problem.head_dim), o(problem.head_dim) {}
  TrueRow row;
  std::vector<DotProduct> dp;
  GradientSums ds;  ///< of dQ or dK
  GradientSums pg;  ///< of dV
  CompensatedSums o;
  Magnitudes magnitudes;
};

template <class T>
class Differentiation {
 public:
  Differentiation(const Problem& problem, const Inputs<T>& inputs, const Tensor4<T>& d_o)
      : problem_(problem),
        inputs_(inputs),
        d_o_(d_o),
        facts_(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq)) {}

  /// D of one row, and its dQ where `dq` isn't null.
  void take_query(const RowPlace& place, Worker& worker, double* dq);
  /// dK and dV of one key. Every query that sees it has been taken.
  void take_key(const RowPlace& place, Worker& worker, double* dk, double* dv) const;

 private:
  [[nodiscard]] std::size_t index_of(const RowPlace& place) const {
    return static_cast<std::size_t>((place.batch * problem_.heads + place.head) * problem_.seq + place.row);
  }
  void measure_query(const RowPlace& place, Worker& worker) const;

  const Problem& problem_;
  const Inputs<T>& inputs_;
  const Tensor4<T>& d_o_;
  std::vector<QueryFacts> facts_;
};

/// What Q and dO of the row add to the magnitudes, and dO · O, which needs `worker.o`.
template <class T>
void Differentiation<T>::measure_query(const RowPlace& place, Worker& worker) const {
  Magnitudes& most = worker.magnitudes;
  const T* q = inputs_.q.matrix(place.batch, place.head).row(place.row);
  const T* g = d_o_.matrix(place.batch, place.head).row(place.row);
  double row = 0;
  double do_o = 0;
  for (std::int64_t x = 0; x < problem_.head_dim; ++x) {
    const auto size = std::fabs(static_cast<double>(g[x]));
    widen(most.query, static_cast<double>(q[x]));
    widen(most.output_gradient, size);
    row += size;
    const double o = worker.o.value(static_cast<std::size_t>(x)) / worker.row.total;
    widen(most.output, o);
    do_o += std::fabs(size * o);
  }
  widen(most.output_gradient_row, row);
  widen(most.summed_do_o, do_o);
}

template <class T>
void Differentiation<T>::take_query(const RowPlace& place, Worker& worker, double* dq) {
  TrueRow& row = worker.row;
  Magnitudes& most = worker.magnitudes;
  weigh(problem_, inputs_, place, row, most);
  QueryFacts& facts = facts_[index_of(place)];
  facts = {.maximum = row.maximum, .total = row.total, .empty = row.empty};
  if (row.empty) return;

  const std::int64_t kv_head = problem_.kv_head_of(place.head);
  const auto k = inputs_.k.matrix(place.batch, kv_head);
  const auto v = inputs_.v.matrix(place.batch, kv_head);
  const T* g = d_o_.matrix(place.batch, place.head).row(place.row);
  const std::size_t keys = row.scores.size();
  worker.dp.resize(keys);
  worker.o.clear();
  CompensatedSum d;
  double sizes = 0;
  for (std::size_t key = 0; key < keys; ++key) {
    if (is_masked(row.scores[key])) continue;
    const T* value = v.row(static_cast<std::int64_t>(key));
    const double p = row.weights[key] / row.total;
    worker.dp[key] = dot_product(g, value, problem_.head_dim);
    worker.o.add(row.weights[key], value);
    d.add(p * worker.dp[key].value);
    sizes += std::fabs(p * worker.dp[key].value);
    widen(most.dp, worker.dp[key].value);
    widen(most.dp_size, worker.dp[key].size);
  }
  facts.d = d.value();
  widen(most.summed_dp, sizes);
  measure_query(place, worker);
  if (dq == nullptr) return;

  worker.ds.clear();
  for (std::size_t key = 0; key < keys; ++key) {
    if (is_masked(row.scores[key])) continue;
    const T* key_row = k.row(static_cast<std::int64_t>(key));
    const double p = row.weights[key] / row.total;
    const double ds = p * (worker.dp[key].value - facts.d);
    worker.ds.sums.add(ds, key_row);
    worker.ds.terms.add(ds, key_row);
    worker.ds.weights.add(p, key_row);
  }
  const double scale = problem_.score_scale();
  for (std::size_t x = 0; x < worker.ds.sums.size(); ++x) {
    dq[x] = scale * worker.ds.sums.value(x);
    widen(most.dq, dq[x]);
    widen(most.dq_terms, scale * worker.ds.terms.values()[x]);
    widen(most.dq_weights, scale * worker.ds.weights.values()[x]);
  }
}

template <class T>
void Differentiation<T>::take_key(const RowPlace& place, Worker& worker, double* dk, double* dv) const {
  Magnitudes& most = worker.magnitudes;
  const T* key = inputs_.k.matrix(place.batch, place.head).row(place.row);
  const T* value = inputs_.v.matrix(place.batch, place.head).row(place.row);
  const double scale = problem_.score_scale();
  const std::int64_t group = problem_.heads / problem_.kv_heads;
  worker.ds.clear();
  worker.pg.clear();
  for (std::int64_t h = place.head * group; h < (place.head + 1) * group; ++h) {
    const auto q = inputs_.q.matrix(place.batch, h);
    const auto g = d_o_.matrix(place.batch, h);
    for (std::int64_t row = first_query_seeing(problem_, place.row); row < problem_.seq; ++row) {
      const QueryFacts& facts = facts_[index_of({place.batch, h, row})];
      if (facts.empty) continue;
      const double score = scale * dot_product(q.row(row), key, problem_.head_dim).value;
      if (is_masked(score)) continue;
      const double p = std::exp(score - facts.maximum) / facts.total;
      const double ds = p * (dot_product(g.row(row), value, problem_.head_dim).value - facts.d);
      worker.ds.sums.add(ds, q.row(row));
      worker.ds.terms.add(ds, q.row(row));
      worker.ds.weights.add(p, q.row(row));
      worker.pg.sums.add(p, g.row(row));
      worker.pg.terms.add(p, g.row(row));
    }
  }
  for (std::size_t x = 0; x < worker.ds.sums.size(); ++x) {
    dk[x] = scale * worker.ds.sums.value(x);
    dv[x] = worker.pg.sums.value(x);
    widen(most.dk, dk[x]);
    widen(most.dv, dv[x]);
    widen(most.dk_terms, scale * worker.ds.terms.values()[x]);
    widen(most.dk_weights, scale * worker.ds.weights.values()[x]);
    widen(most.dv_terms, worker.pg.terms.values()[x]);
  }
}

/// The query rows that dQ of `queries` and the gradients of `keys` need, each once.
std::vector<NeededRow> needed_rows(const Problem& problem, const RowSample& queries, const RowSample& keys) {
  // Of each query head: all rows from here on.
  std::vector<std::int64_t> from(static_cast<std::size_t>(problem.batch * problem.heads), problem.seq);
  const std::int64_t group = problem.heads / problem.kv_heads;
  for (const RowPlace& key : keys.rows) {
    for (std::int64_t h = key.head * group; h < (key.head + 1) * group; ++h) {
      auto& first = from[static_cast<std::size_t>(key.batch * problem.heads + h)];
      first = std::min(first, first_query_seeing(problem, key.row));
    }
  }
  std::vector<NeededRow> needed;
  for (std::size_t k = 0; k < queries.rows.size(); ++k) {
    needed.push_back({queries.rows[k], static_cast<std::int64_t>(k)});
  }
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t row = from[static_cast<std::size_t>(b * problem.heads + h)]; row < problem.seq;
           ++row) {
        const RowPlace place{b, h, row};
        if (!std::binary_search(queries.rows.begin(), queries.rows.end(), place)) needed.push_back({place});
      }
    }
  }
  return needed;
}

/// max |K| and max |V| over the keys that one of the rows sees.
template <class T>
void measure_keys(const Problem& problem, const Inputs<T>& inputs, const std::vector<NeededRow>& rows,
                  Magnitudes& most) {
  std::vector<std::int64_t> seen(static_cast<std::size_t>(problem.batch * problem.kv_heads));
  for (const auto& [place, dq_row] : rows) {
    auto& keys =
        seen[static_cast<std::size_t>(place.batch * problem.kv_heads + problem.kv_head_of(place.head))];
    keys = std::max(keys, visible_keys(problem, place.row));
  }
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      const std::int64_t elements =
          seen[static_cast<std::size_t>(b * problem.kv_heads + h)] * problem.head_dim;
      const T* k = inputs.k.matrix(b, h).data;
      const T* v = inputs.v.matrix(b, h).data;
      for (std::int64_t i = 0; i < elements; ++i) {
        widen(most.key, static_cast<double>(k[i]));
        widen(most.value, static_cast<double>(v[i]));
      }
    }
  }
}

/// Room for the rows of `sample` of a tensor [B, heads, rows, d].
Tensor4<double> room_for(const RowSample& sample, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                         std::int64_t d) {
  if (sample.whole()) return {batch, heads, rows, d};
  return {1, 1, static_cast<std::int64_t>(sample.rows.size()), d};
}

}  // namespace

template <class T>
TrueGradients true_gradients(const Problem& problem, const Inputs<T>& inputs, const Tensor4<T>& d_o,
                             RowSample queries, RowSample keys, int threads) {
  const std::int64_t d = problem.head_dim;
  TrueGradients truth;
  Tensor4<double>& dq = truth.gradients.dq;
  Tensor4<double>& dk = truth.gradients.dk;
  Tensor4<double>& dv = truth.gradients.dv;
  dq = room_for(queries, problem.batch, problem.heads, problem.seq, d);
  dk = room_for(keys, problem.batch, problem.kv_heads, problem.kv_seq, d);
  dv = room_for(keys, problem.batch, problem.kv_heads, problem.kv_seq, d);

  Differentiation<T> differentiation(problem, inputs, d_o);
  std::vector<Worker> workers(static_cast<std::size_t>(std::max(threads, 1)), Worker(problem));
  const std::vector<NeededRow> rows = needed_rows(problem, queries, keys);
  for_each_index(threads, static_cast<std::int64_t>(rows.size()), [&](int worker, std::int64_t index) {
    const NeededRow& row = rows[static_cast<std::size_t>(index)];
    differentiation.take_query(row.place, workers[static_cast<std::size_t>(worker)],
                               row.dq_row >= 0 ? dq.data().data() + row.dq_row * d : nullptr);
  });
  for_each_index(threads, static_cast<std::int64_t>(keys.rows.size()), [&](int worker, std::int64_t index) {
    differentiation.take_key(keys.rows[static_cast<std::size_t>(index)],
                             workers[static_cast<std::size_t>(worker)], dk.data().data() + index * d,
                             dv.data().data() + index * d);
  });
  for (const Worker& worker : workers) truth.magnitudes.widen(worker.magnitudes);
  measure_keys(problem, inputs, rows, truth.magnitudes);
  truth.queries = std::move(queries);
  truth.keys = std::move(keys);
  return truth;
}

template TrueGradients true_gradients(const Problem&, const Inputs<float>&, const Tensor4<float>&, RowSample,
                                      RowSample, int);
template TrueGradients true_gradients(const Problem&, const Inputs<double>&, const Tensor4<double>&,
                                      RowSample, RowSample, int);

}  // namespace flashsim
