// Attention in a few plain loops, forward and backward, in T and with every rounding to storage that a
// tolerance allows for. Written apart from the walks: what a tolerance must cover even where the executor
// happens to round less.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/tensors.hpp"
#include "core/base/rounding.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/mask.hpp"
#include "core/problem/problem.hpp"

namespace flashsim::test {

struct PlainWay {
  Algorithm algorithm{};
  std::int64_t key_rows = 128;
  bool sums_rounded_weights = false;  ///< the denominator adds P as it is stored, or as it was computed
  bool d_from_output = true;          ///< D = Σ dO ∘ O, or Σ P ∘ dP
};

template <class T>
class PlainAttention {
 public:
  PlainAttention(const PlainWay& way, const Problem& problem, const Inputs<T>& inputs)
      : way_(way),
        problem_(problem),
        inputs_(inputs),
        facts_(facts_of(way.algorithm)),
        tiled_(facts_.tiled) {}

  Outputs<T> forward() {
    const Problem& p = problem_;
    Outputs<T> outputs{Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim),
                       Tensor4<T>(p.batch, p.heads, p.seq, 1)};
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t row) {
      T* o = outputs.o.matrix(b, h).row(row);
      outputs.lse.matrix(b, h)(row, 0) = facts_.online     ? tiled_row(b, h, row, o)
                                         : facts_.rescales ? row_of_parts(b, h, row, o)
                                                           : whole_row(b, h, row, o);
    });
    return outputs;
  }

  Gradients<T> backward(const Outputs<T>& outputs, const Tensor4<T>& d_o) {
    const Problem& p = problem_;
    Gradients<T> gradients{Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim),
                           Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                           Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)};
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t row) {
      const T lse = outputs.lse.matrix(b, h)(row, 0);
      if (lse == -std::numeric_limits<T>::infinity()) return;
      const auto k = inputs_.k.matrix(b, p.kv_head_of(h));
      const auto v = inputs_.v.matrix(b, p.kv_head_of(h));
      const T* g = d_o.matrix(b, h).row(row);
      const std::vector<T> s = scores(b, h, row);
      std::vector<T> weights;
      std::vector<T> dp;
      T of_products = 0;
      for (std::size_t j = 0; j < s.size(); ++j) {
        const T exact = std::exp(s[j] - lse);
        weights.push_back(tiled_ ? exact : stored(exact));
        const T product = dot(g, v.row(static_cast<std::int64_t>(j)));
        dp.push_back(tiled_ ? product : stored(product));
        of_products += weights[j] * dp[j];
      }
      const T d = way_.d_from_output ? dot(g, outputs.o.matrix(b, h).row(row)) : of_products;
      const T scale = static_cast<T>(p.score_scale());
      for (std::size_t j = 0; j < s.size(); ++j) {
        const auto key = static_cast<std::int64_t>(j);
        const T ds = stored(weights[j] * (dp[j] - d));
        const T weight = stored(weights[j]);
        for (std::int64_t x = 0; x < p.head_dim; ++x) {
          gradients.dq.matrix(b, h)(row, x) += scale * ds * k(key, x);
          gradients.dk.matrix(b, p.kv_head_of(h))(key, x) += scale * ds * inputs_.q.matrix(b, h)(row, x);
          gradients.dv.matrix(b, p.kv_head_of(h))(key, x) += weight * g[x];
        }
      }
    });
    for (Tensor4<T>* each : {&gradients.dq, &gradients.dk, &gradients.dv}) {
      for (T& value : each->data()) value = stored(value);
    }
    return gradients;
  }

 private:
  [[nodiscard]] T stored(T value) const { return stored_as(problem_.storage, value); }

  template <class Row>
  void each_row(const Row& take) const {
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      for (std::int64_t h = 0; h < problem_.heads; ++h) {
        for (std::int64_t row = 0; row < problem_.seq; ++row) take(b, h, row);
      }
    }
  }
  T dot(const T* a, const T* c) const {
    T sum = 0;
    for (std::int64_t x = 0; x < problem_.head_dim; ++x) sum += a[x] * c[x];
    return sum;
  }
  std::vector<T> scores(std::int64_t b, std::int64_t h, std::int64_t row) const {
    std::vector<T> s;
    const auto k = inputs_.k.matrix(b, problem_.kv_head_of(h));
    const T scale = static_cast<T>(problem_.score_scale());
    for (std::int64_t key = 0; key < visible_keys(problem_, row); ++key) {
      T score = dot(inputs_.q.matrix(b, h).row(row), k.row(key));
      if (way_.algorithm == Algorithm::eager) score = stored(score);
      score *= scale;
      s.push_back(facts_.stores_scores ? stored(score) : score);
    }
    return s;
  }

  T whole_row(std::int64_t b, std::int64_t h, std::int64_t row, T* o) const {
    std::vector<T> s = scores(b, h, row);
    if (s.empty()) return -std::numeric_limits<T>::infinity();
    const auto v = inputs_.v.matrix(b, problem_.kv_head_of(h));
    const T m = *std::max_element(s.begin(), s.end());
    T l = 0;
    for (T& each : s) l += each = std::exp(each - m);
    for (std::size_t j = 0; j < s.size(); ++j) {
      const T p = stored(s[j] / l);
      for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] += p * v(static_cast<std::int64_t>(j), x);
    }
    for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] = stored(o[x]);
    return m + std::log(l);
  }

  T tiled_row(std::int64_t b, std::int64_t h, std::int64_t row, T* o) const {
    const std::vector<T> s = scores(b, h, row);
    if (s.empty()) return -std::numeric_limits<T>::infinity();
    const auto v = inputs_.v.matrix(b, problem_.kv_head_of(h));
    const auto visible = static_cast<std::int64_t>(s.size());
    const bool flash1 = way_.algorithm == Algorithm::flash1;
    T m = -std::numeric_limits<T>::infinity();
    T l = 0;
    for (std::int64_t begin = 0; begin < visible; begin += way_.key_rows) {
      const std::int64_t end = std::min(begin + way_.key_rows, visible);
      T next = m;
      for (std::int64_t j = begin; j < end; ++j) next = std::max(next, s[static_cast<std::size_t>(j)]);
      const T r = std::exp(m - next);
      const T factor = flash1 ? r * l : r;
      m = next;
      for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] *= factor;
      T sum = 0;
      for (std::int64_t j = begin; j < end; ++j) {
        const T weight = std::exp(s[static_cast<std::size_t>(j)] - m);
        const T kept = stored(weight);
        sum += way_.sums_rounded_weights ? kept : weight;
        for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] += kept * v(j, x);
      }
      l = r * l + sum;
      if (flash1) finish(o, l);
    }
    if (!flash1) finish(o, l);
    return m + std::log(l);
  }
  /// Every part of the keys by its own maximum, and then together.
  T row_of_parts(std::int64_t b, std::int64_t h, std::int64_t row, T* o) const {
    const std::vector<T> s = scores(b, h, row);
    if (s.empty()) return -std::numeric_limits<T>::infinity();
    const auto v = inputs_.v.matrix(b, problem_.kv_head_of(h));
    const auto visible = static_cast<std::int64_t>(s.size());
    const T whole = *std::max_element(s.begin(), s.end());
    T l = 0;
    for (std::int64_t begin = 0; begin < visible; begin += way_.key_rows) {
      const std::int64_t end = std::min(begin + way_.key_rows, visible);
      const T m = *std::max_element(s.begin() + begin, s.begin() + end);
      const T r = std::exp(m - whole);
      std::vector<T> part(static_cast<std::size_t>(problem_.head_dim), 0);
      T sum = 0;
      for (std::int64_t j = begin; j < end; ++j) {
        const T weight = std::exp(s[static_cast<std::size_t>(j)] - m);
        const T kept = stored(weight);
        sum += way_.sums_rounded_weights ? kept : weight;
        for (std::int64_t x = 0; x < problem_.head_dim; ++x)
          part[static_cast<std::size_t>(x)] += kept * v(j, x);
      }
      l += r * sum;
      for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] += r * part[static_cast<std::size_t>(x)];
    }
    finish(o, l);
    return whole + std::log(l);
  }
  void finish(T* o, T l) const {
    for (std::int64_t x = 0; x < problem_.head_dim; ++x) o[x] = stored(o[x] / l);
  }

  PlainWay way_;
  const Problem& problem_;
  const Inputs<T>& inputs_;
  const AlgorithmFacts& facts_;
  bool tiled_;
};

}  // namespace flashsim::test
