#include "core/attention/executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/attention/row_state.hpp"
#include "core/base/rounding.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

/// The stand-in of a kernel that has no −∞.
constexpr double kFiniteMask = -1e4;

/// Columns of a row-major tile that are whole vectors.
template <class T>
std::int64_t padded(std::int64_t columns) {
  constexpr std::int64_t kWhole = kPanelWidth<T> / 2;
  return (columns + kWhole - 1) / kWhole * kWhole;
}

}  // namespace

template <class T>
Executor<T>::Executor(const Problem& problem, const Method& method, Switches switches, Pass pass,
                      std::int64_t query_tiles, bool watched)
    : algorithm_(method.algorithm),
      problem_(problem),
      tiling_(method.tiling),
      score_factor_(method.algorithm == Algorithm::eager && method.passes.scale
                        ? T(1)
                        : static_cast<T>(problem.score_scale())),
      switches_(switches),
      kernels_(tile_kernels<T>()),
      chunked_(method.algorithm == Algorithm::memory_efficient),
      whole_rows_(!facts_of(method.algorithm).tiled),
      chunk_rows_(std::min(method.tiling.query_rows, problem.seq)),
      row_keys_(problem.kv_seq),
      watched_(watched),
      rounds_(is_narrower<T>(problem.storage)),
      rows_(std::min(query_tiles * chunk_rows_, problem.seq)) {
  const Tiling tiling = method.tiling;
  const bool pads = switches.fault == Fault::unmasked_padding && !whole_rows_;
  const std::int64_t chunk_keys = pads ? tiling.key_rows : std::min(tiling.key_rows, problem.kv_seq);
  const std::int64_t key_tiles = (problem.kv_seq - 1) / tiling.key_rows + 1;
  const std::int64_t br = chunked_ ? std::min(kProductTiles.query_rows, chunk_rows_) : chunk_rows_;
  const std::int64_t bc = chunked_ ? std::min(kProductTiles.key_rows, chunk_keys) : chunk_keys;
  const std::int64_t panels = panels_of<T>(br);
  const std::int64_t d = problem.head_dim;
  const std::int64_t rows = rows_;
  if (chunked_) row_keys_ = chunk_keys;
  if (pads) row_keys_ = key_tiles * chunk_keys;
  const bool backward = pass == Pass::backward;
  for (PanelTile* tile : {&q_, &o_}) tile->resize(panels, d);
  s_.resize(panels, whole_rows_ ? row_keys_ : bc);
  for (KeyTile* tile : {&k_, &v_}) tile->resize(bc, d);
  for (Statistic* each :
       {&m_before_, &m_now_, &row_sum_, &r_, &l_before_, &l_now_, &lse_, &delta_, &scratch_}) {
    each->resize(static_cast<std::size_t>(panels * kPanelWidth<T>));
  }
  if (facts_of(algorithm_).stores_scores) scores_.resize(static_cast<std::size_t>(rows * row_keys_));
  if (chunked_) {
    o_part_.resize(panels, d);
    o_parts_.resize(static_cast<std::size_t>(key_tiles * chunk_rows_ * d));
    for (AlignedVector<T>* each : {&m_parts_, &l_parts_}) {
      each->resize(static_cast<std::size_t>(key_tiles * chunk_rows_));
    }
    m_of_parts_.resize(static_cast<std::size_t>(key_tiles * panels * kPanelWidth<T>));
  }
  if (whole_rows_ || algorithm_ == Algorithm::flash1) {
    m_.resize(static_cast<std::size_t>(rows));
    l_.resize(static_cast<std::size_t>(rows));
  }
  if (algorithm_ == Algorithm::split_kv && method.splits > 1) {
    o_parts_.resize(static_cast<std::size_t>(method.splits * rows * d));
    lse_parts_.resize(static_cast<std::size_t>(method.splits * rows));
    o_part_.resize(panels, d);
  }
  if (problem.rows_per_query > 1) {
    gathered_.resize(static_cast<std::size_t>(kPanelWidth<T> * std::max(d, bc)));
  }
  if (!backward) return;
  for (PanelTile* tile : {&d_o_, &dq_}) tile->resize(panels, d);
  ds_.resize(panels, s_.depth);
  if (rounds_) p_.resize(panels, s_.depth);
  for (KeyTile* tile : {&q_rows_, &d_o_rows_}) tile->resize(br, padded<T>(d));
  for (KeyTile* tile : {&dk_, &dv_}) tile->resize(bc, padded<T>(d));
  if (whole_rows_) score_gradients_.resize(static_cast<std::size_t>(rows * problem.kv_seq));
}

template <class T>
void Executor<T>::begin(const HeadTensors<T>& head, std::int64_t first_query_tile) {
  head_ = head;
  first_row_ = first_query_tile * tiling_.query_rows;
}

template <class T>
std::int64_t Executor<T>::key_count(const Step& step) const {
  return switches_.fault == Fault::unmasked_padding && !whole_rows_ ? tiling_.key_rows : step.keys.size();
}

template <class T>
Range Executor<T>::keys_on_chip(const Step& step) const {
  if (!whole_rows_) return {0, key_count(step)};
  const std::int64_t first = chunked_ ? step.key_tile * tiling_.key_rows : 0;
  return {step.keys.begin - first, step.keys.end - first};
}

template <class T>
std::int64_t Executor<T>::keys_seen(const Step& step, std::int64_t panel) const {
  const bool masks_truly =
      switches_.fault != Fault::finite_mask && switches_.fault != Fault::unmasked_padding;
  if (whole_rows_ || watched_ || !masks_truly) return key_count(step);
  const std::int64_t last = std::min(step.rows.begin + (panel + 1) * kPanelWidth<T>, step.rows.end) - 1;
  return std::clamp<std::int64_t>(visible_keys(problem_, last) - step.keys.begin, 0, step.keys.size());
}

template <class T>
T* Executor<T>::score_rows(AlignedVector<T>& matrix, const Step& step) {
  return matrix.data() + (step.rows.begin - first_row_) * row_keys_;
}

template <class T>
void Executor<T>::step(const Step& step) {
  last_ = step;
  switch (step.operation) {
    case Operation::initialise: initialise(step); break;
    case Operation::load: load(step); break;
    case Operation::reset: reset(step); break;
    case Operation::scores: compute_scores(step); break;
    case Operation::scale:
      if (head_.scores.data != nullptr) break;
      for_panels(step, [&](std::int64_t p, std::int64_t) {
        const Range keys = keys_on_chip(step);
        kernels_.scale(s_.panel(p) + keys.begin * kPanelWidth<T>, keys.size() * kPanelWidth<T>,
                       static_cast<T>(problem_.score_scale()));
      });
      break;
    case Operation::mask: mask_scores(step); break;
    case Operation::softmax: softmax_rows(step); break;
    case Operation::online_softmax: online_softmax(step); break;
    case Operation::rescale: rescale(step); break;
    case Operation::accumulate: accumulate(step); break;
    case Operation::finish: finish(step); break;
    case Operation::store: store(step); break;
    case Operation::discard:
    case Operation::dropout: break;
    case Operation::row_maximum: row_maximum(step); break;
    case Operation::denominator: denominator(step); break;
    case Operation::combine: chunked_ ? combine_chunk(step) : combine_part(step); break;
    case Operation::row_dot: row_dots(step); break;
    case Operation::probabilities:
      step.operand == Operand::l ? normalised_probabilities(step) : probabilities(step);
      break;
    case Operation::value_gradient:
      add_key_side(dv_, rounds_ && !whole_rows_ ? p_ : s_, d_o_rows_, T(1), step);
      break;
    case Operation::probability_gradient: probability_gradient(step); break;
    case Operation::score_gradient: score_gradient(step); break;
    case Operation::query_gradient: query_gradient(step); break;
    case Operation::key_gradient:
      add_key_side(dk_, ds_, q_rows_, static_cast<T>(problem_.score_scale()), step);
      break;
  }
}

template <class T>
void Executor<T>::compute_scores(const Step& step) {
  const Range keys = keys_on_chip(step);
  const std::int64_t valid = step.keys.size();
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    T* s = s_.panel(p) + keys.begin * kPanelWidth<T>;
    if (head_.scores.data != nullptr) {
      const MatrixView<const T> given = side_by_side(head_.scores, step, p, count, step.keys);
      kernels_.pack(given.data, given.stride, count, valid, s);
      std::fill(s + valid * kPanelWidth<T>, s + keys.size() * kPanelWidth<T>, T(0));
      return;
    }
    kernels_.product({.c = s,
                      .c_stride = kPanelWidth<T>,
                      .a = k_.data.data(),
                      .a_row = k_.stride,
                      .a_step = 1,
                      .b = q_.panel(p),
                      .b_stride = kPanelWidth<T>,
                      .rows = keys_seen(step, p),
                      .columns = kPanelWidth<T>,
                      .depth = problem_.head_dim,
                      .mode = Product<T>::Mode::assign,
                      .factor = score_factor_});
  });
}

template <class T>
void Executor<T>::mask_scores(const Step& step) {
  const bool pads = key_count(step) > step.keys.size();
  if (step.idle && !(pads && problem_.causal)) return;
  const Range keys = keys_on_chip(step);
  const T stand_in = switches_.fault == Fault::finite_mask ? static_cast<T>(kFiniteMask) : kMinusInfinity<T>;
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    T* visible = scratch_.data() + p * kPanelWidth<T>;
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      const std::int64_t row = step.rows.begin + p * kPanelWidth<T> + std::min(q, count - 1);
      const std::int64_t limit = pads ? diagonal(problem_, row) : visible_keys(problem_, row);
      visible[q] = static_cast<T>(std::clamp<std::int64_t>(limit - step.keys.begin, 0, keys.size()));
    }
    T* s = s_.panel(p) + keys.begin * kPanelWidth<T>;
    const std::int64_t seen = keys_seen(step, p);
    kernels_.mask(s, seen, visible, stand_in);
    std::fill(s + seen * kPanelWidth<T>, s + keys.size() * kPanelWidth<T>, stand_in);
  });
}

template <class T>
void Executor<T>::softmax_rows(const Step& step) {
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    T* s = s_.panel(p);
    T* m = m_now_.data() + p * kPanelWidth<T>;
    T* l = l_now_.data() + p * kPanelWidth<T>;
    T* scratch = scratch_.data() + p * kPanelWidth<T>;
    std::fill_n(m, kPanelWidth<T>, kMinusInfinity<T>);
    kernels_.maximum(s, problem_.kv_seq, m);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      if (!switches_.subtract_max && m[q] != kMinusInfinity<T>) m[q] = 0;
      scratch[q] = reference(m[q]);
    }
    if (switches_.accumulate_in_storage) {
      kernels_.exponentials(s, problem_.kv_seq, scratch, l, problem_.storage);
      std::fill_n(l, kPanelWidth<T>, T(0));
      kernels_.rounded_sum(s, problem_.kv_seq, l, problem_.storage);
    } else {
      kernels_.exponentials(s, problem_.kv_seq, scratch, l, NumberType::fp64);
    }
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      scratch[q] = is_empty_row(m[q], l[q]) ? T(1) : l[q];
      lse_[static_cast<std::size_t>(p * kPanelWidth<T> + q)] = logsumexp(m[q], l[q]);
    }
    kernels_.divide(s, problem_.kv_seq, scratch);
    std::copy_n(m, count, statistic(m_, step) + p * kPanelWidth<T>);
    std::copy_n(l, count, statistic(l_, step) + p * kPanelWidth<T>);
  });
}

template <class T>
void Executor<T>::online_softmax(const Step& step) {
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t at = p * kPanelWidth<T>;
    T* m = m_now_.data() + at;
    T* scratch = scratch_.data() + at;
    if (switches_.fault == Fault::reset_per_tile) std::fill_n(m, kPanelWidth<T>, kMinusInfinity<T>);
    std::copy_n(m, kPanelWidth<T>, m_before_.data() + at);
    const std::int64_t seen = keys_seen(step, p);
    kernels_.maximum(s_.panel(p), seen, m);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      if (!switches_.subtract_max && m[q] != kMinusInfinity<T>) m[q] = 0;
      scratch[q] = reference(m[q]);
    }
    kernels_.exponentials(s_.panel(p), seen, scratch, row_sum_.data() + at, problem_.storage);
    std::fill(s_.panel(p) + seen * kPanelWidth<T>, s_.panel(p) + key_count(step) * kPanelWidth<T>, T(-0.0));
  });
}

template <class T>
void Executor<T>::rescale(const Step& step) {
  const Fault fault = switches_.fault;
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const auto at = static_cast<std::size_t>(p * kPanelWidth<T>);
    T* r = r_.data() + at;
    T* l = l_now_.data() + at;
    T* factor = scratch_.data() + at;
    for (std::size_t q = at; q < at + kPanelWidth<T>; ++q) {
      const T exponent = m_before_[q] - reference(m_now_[q]);
      scratch_[q] =
          fault == Fault::inverted_rescale && m_before_[q] != kMinusInfinity<T> ? -exponent : exponent;
    }
    kernels_.exponential(factor, kPanelWidth<T>, r);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      r[q] = switches_.rescale ? r[q] + T(0) : T(1);  // + 0: no weight becomes a plain zero
      const T before = fault == Fault::reset_per_tile ? T(0) : l[q];
      const T of_l = fault == Fault::rescale_o_only ? T(1) : r[q];
      const T of_o = fault == Fault::rescale_l_only ? T(1) : r[q];
      l_before_[at + static_cast<std::size_t>(q)] = before;
      factor[q] = fault == Fault::reset_per_tile ? T(0) : o_is_normalised_ ? of_o * before : of_o;
      l[q] = of_l * before;
    }
    if (fault == Fault::reset_per_tile) {
      std::fill_n(o_.panel(p), o_.depth * kPanelWidth<T>, T(0));
    } else {
      kernels_.multiply(o_.panel(p), o_.depth, factor);
    }
    if (switches_.accumulate_in_storage) {
      kernels_.round(l, kPanelWidth<T>, l, problem_.storage);
      kernels_.round(o_.panel(p), o_.depth * kPanelWidth<T>, o_.panel(p), problem_.storage);
      kernels_.rounded_sum(s_.panel(p), key_count(step), l, problem_.storage);
    } else {
      for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) l[q] += row_sum_[at + static_cast<std::size_t>(q)];
    }
  });
  o_is_normalised_ = false;
}

template <class T>
void Executor<T>::accumulate(const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const Product<T> product{.c = o_.panel(p),
                             .c_stride = kPanelWidth<T>,
                             .a = v_.data.data(),
                             .a_row = 1,
                             .a_step = v_.stride,
                             .b = s_.panel(p) + keys.begin * kPanelWidth<T>,
                             .b_stride = kPanelWidth<T>,
                             .rows = problem_.head_dim,
                             .columns = kPanelWidth<T>,
                             .depth = keys_seen(step, p),
                             .mode = Product<T>::Mode::add};
    if (v_.finite && !switches_.accumulate_in_storage) {
      kernels_.product(product);
    } else {
      kernels_.careful_product(product, WeightsIn::b, sum_type());
    }
  });
}

template <class T>
void Executor<T>::finish(const Step& step) {
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const auto at = static_cast<std::size_t>(p * kPanelWidth<T>);
    for (std::size_t q = at; q < at + kPanelWidth<T>; ++q) {
      // The O of an empty row is 0 and stays it.
      scratch_[q] = is_empty_row(m_now_[q], l_now_[q]) ? T(1) : l_now_[q];
      if (step.operand != Operand::O) lse_[q] = logsumexp(m_now_[q], l_now_[q]);
    }
    if (step.operand != Operand::l) kernels_.divide(o_.panel(p), o_.depth, scratch_.data() + at);
  });
  if (step.operand == Operand::l) return;
  o_is_normalised_ = true;
  if (!chunked_) return;
  const auto rows = static_cast<std::size_t>(step.rows.size());
  std::copy_n(m_now_.begin(), rows, statistic(m_, step));
  std::copy_n(l_now_.begin(), rows, statistic(l_, step));
}

/// O_i ← O_i + p · O_part and l ← l + p with p = exp(L_part − m), where m is the largest L_part of the row.
/// The switches break what is within a part; this is always the right way.
template <class T>
void Executor<T>::combine_part(const Step& step) {
  const T* lse = lse_parts_.data() + part_row(step);
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const auto at = static_cast<std::size_t>(p * kPanelWidth<T>);
    T* weight = scratch_.data() + at;
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      const T of_row = q < count ? lse[p * kPanelWidth<T> + q] : kMinusInfinity<T>;
      weight[q] = of_row - reference(m_now_[at + static_cast<std::size_t>(q)]);
    }
    kernels_.exponential(weight, kPanelWidth<T>, weight);
    // + 0: no weight becomes a plain zero.
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      weight[q] += T(0);
      l_now_[at + static_cast<std::size_t>(q)] += weight[q];
    }
    kernels_.multiply(o_part_.panel(p), o_part_.depth, weight);
    T* sum = o_.panel(p);
    const T* part = o_part_.panel(p);
    for (std::int64_t x = 0; x < o_.depth * kPanelWidth<T>; ++x) sum[x] += part[x];
  });
}

template <class T>
void Executor<T>::complete(Range rows) {
  if (m_.empty()) return;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const auto at = static_cast<std::size_t>(row - first_row_);
    head_.lse(row, 0) = logsumexp(m_[at], l_[at]);
  }
}

template <class T>
NumberMatrix Executor<T>::read(ChipValue value) const {
  auto& self = const_cast<Executor&>(*this);
  const std::int64_t rows = last_.rows.size();
  const auto panels = [&](PanelTile& tile, Range columns) {
    NumberMatrix numbers{.rows = rows, .columns = columns.size()};
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* lane = tile.panel(r / kPanelWidth<T>) + r % kPanelWidth<T>;
      // A weight of −0 is shown as what it is worth.
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        numbers.numbers.push_back(lane[c * kPanelWidth<T>] + T(0));
      }
    }
    return numbers;
  };
  const auto key_tile = [&](const KeyTile& tile) {
    NumberMatrix numbers{.rows = last_.keys.size(), .columns = problem_.head_dim};
    for (std::int64_t r = 0; r < numbers.rows; ++r) {
      for (std::int64_t c = 0; c < numbers.columns; ++c) {
        numbers.numbers.push_back(tile.data[static_cast<std::size_t>(r * tile.stride + c)] + T(0));
      }
    }
    return numbers;
  };
  const auto column = [&](const Statistic& statistic) {
    return NumberMatrix{.rows = rows,
                        .columns = 1,
                        .numbers = std::vector<double>(statistic.begin(), statistic.begin() + rows)};
  };
  const Range keys = whole_rows_ ? keys_on_chip(last_) : Range{0, last_.keys.size()};
  const Range columns{0, problem_.head_dim};
  switch (value) {
    case ChipValue::Q: return panels(self.q_, columns);
    case ChipValue::K: return key_tile(k_);
    case ChipValue::V: return key_tile(v_);
    case ChipValue::S:
    case ChipValue::P: return panels(self.s_, keys);
    case ChipValue::O: return panels(self.o_, columns);
    case ChipValue::m_before: return column(m_before_);
    case ChipValue::m: return column(m_now_);
    case ChipValue::row_sum: return column(row_sum_);
    case ChipValue::r: return column(r_);
    case ChipValue::l_before: return column(l_before_);
    case ChipValue::l: return column(l_now_);
    case ChipValue::L: {
      NumberMatrix numbers{.rows = rows, .columns = 1};
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
        const T lse = whole_rows_ ? lse_[r] : logsumexp(m_now_[r], l_now_[r]);
        numbers.numbers.push_back(lse);
      }
      return numbers;
    }
  }
  return {};
}

template class Executor<float>;
template class Executor<double>;

}  // namespace flashsim
