#include "core/attention/executor.hpp"

#include <algorithm>

namespace flashsim {
namespace {

/// Copies `from` into `to`, which has the same shape.
template <class T>
void copy(MatrixView<const T> from, MatrixView<T> to) {
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.columns, to.row(r));
}

/// Rows [begin, end) of a matrix.
template <class T>
MatrixView<T> rows_of(MatrixView<T> matrix, Range range) {
  return {matrix.row(range.begin), range.size(), matrix.columns, matrix.stride};
}

/// The block [rows, keys] of a matrix [N, Nkv].
template <class T>
MatrixView<T> block_of(MatrixView<T> matrix, Range rows, Range keys) {
  return {matrix.row(rows.begin) + keys.begin, rows.size(), keys.size(), matrix.stride};
}

}  // namespace

template <class T>
Executor<T>::Executor(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                      HeadTensors<T> head)
    : algorithm_(algorithm),
      problem_(problem),
      switches_(switches),
      head_(head),
      whole_rows_(!facts_of(algorithm).tiled),
      m_(static_cast<std::size_t>(problem.seq), kMinusInfinity<T>),
      l_(static_cast<std::size_t>(problem.seq)),
      rows_(std::min(tiling.query_rows, problem.seq)) {
  const std::int64_t br = std::min(tiling.query_rows, problem.seq);
  const std::int64_t bc = std::min(tiling.key_rows, problem.kv_seq);
  const std::int64_t columns = whole_rows_ ? problem.kv_seq : bc;
  if (whole_rows_) scores_ = Matrix<T>(problem.seq, problem.kv_seq);
  q_tile_ = Matrix<T>(br, problem.head_dim);
  k_tile_ = Matrix<T>(bc, problem.head_dim);
  v_tile_ = Matrix<T>(bc, problem.head_dim);
  s_tile_ = Matrix<T>(br, columns);
  p_tile_ = Matrix<T>(br, columns);
  o_tile_ = Matrix<T>(br, problem.head_dim);
}

template <class T>
MatrixView<T> Executor<T>::tile_of(Matrix<T>& matrix, const Step& step) {
  const std::int64_t first = whole_rows_ ? step.keys.begin : 0;
  return {matrix.view().data + first, step.rows.size(), step.keys.size(), matrix.columns()};
}

template <class T>
MatrixView<T> Executor<T>::top(Matrix<T>& matrix, std::int64_t rows) {
  return {matrix.view().data, rows, matrix.columns(), matrix.columns()};
}

template <class T>
void Executor<T>::load(const Step& step) {
  const auto rows = static_cast<std::size_t>(step.rows.size());
  switch (step.operand) {
    case Operand::Q:
      if (head_.q.data != nullptr) copy<T>(rows_of(head_.q, step.rows), top(q_tile_, step.rows.size()));
      break;
    case Operand::K:
      if (head_.k.data != nullptr) copy<T>(rows_of(head_.k, step.keys), top(k_tile_, step.keys.size()));
      break;
    case Operand::V: copy<T>(rows_of(head_.v, step.keys), top(v_tile_, step.keys.size())); break;
    case Operand::S: copy<T>(block_of(scores_.view(), step.rows, step.keys), tile_of(s_tile_, step)); break;
    case Operand::P: copy<T>(block_of(scores_.view(), step.rows, step.keys), tile_of(p_tile_, step)); break;
    case Operand::O:
      copy<T>(rows_of(head_.o, step.rows), top(o_tile_, step.rows.size()));
      o_is_normalised_ = true;
      break;
    case Operand::m: std::copy_n(m_.begin() + step.rows.begin, rows, rows_.m.begin()); break;
    case Operand::l: std::copy_n(l_.begin() + step.rows.begin, rows, rows_.l.begin()); break;
    case Operand::L: break;
  }
}

template <class T>
void Executor<T>::store(const Step& step) {
  const auto rows = static_cast<std::size_t>(step.rows.size());
  switch (step.operand) {
    case Operand::S: copy<T>(tile_of(s_tile_, step), block_of(scores_.view(), step.rows, step.keys)); break;
    case Operand::P: copy<T>(tile_of(p_tile_, step), block_of(scores_.view(), step.rows, step.keys)); break;
    case Operand::O: copy<T>(top(o_tile_, step.rows.size()), rows_of(head_.o, step.rows)); break;
    case Operand::L:
      for (std::size_t r = 0; r < rows; ++r) {
        head_.lse(step.rows.begin + static_cast<std::int64_t>(r), 0) = rows_.logsumexp[r];
      }
      break;
    case Operand::m: std::copy_n(rows_.m.begin(), rows, m_.begin() + step.rows.begin); break;
    case Operand::l: std::copy_n(rows_.l.begin(), rows, l_.begin() + step.rows.begin); break;
    case Operand::Q:
    case Operand::K:
    case Operand::V: break;
  }
}

template <class T>
void Executor<T>::initialise(const Step& step) {
  const Range rows = step.rows;
  if (step.operand == Operand::O) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r) std::fill_n(head_.o.row(r), problem_.head_dim, T(0));
  } else {
    auto& statistic = step.operand == Operand::m ? m_ : l_;
    std::fill(statistic.begin() + rows.begin, statistic.begin() + rows.end,
              step.operand == Operand::m ? kMinusInfinity<T> : T(0));
  }
}

template <class T>
void Executor<T>::reset(const Step& step) {
  for (std::int64_t r = 0; r < step.rows.size(); ++r) {
    std::fill_n(o_tile_.view().row(r), problem_.head_dim, T(0));
    rows_.m[static_cast<std::size_t>(r)] = kMinusInfinity<T>;
    rows_.l[static_cast<std::size_t>(r)] = 0;
  }
  o_is_normalised_ = false;
}

template <class T>
void Executor<T>::compute_scores(const Step& step) {
  if (head_.scores.data != nullptr) {
    copy<T>(block_of(head_.scores, step.rows, step.keys), tile_of(s_tile_, step));
    return;
  }
  const T factor = algorithm_ == Algorithm::eager ? T(1) : static_cast<T>(problem_.score_scale());
  tile_scores<T>(top(q_tile_, step.rows.size()), top(k_tile_, step.keys.size()), factor,
                 tile_of(s_tile_, step));
}

template <class T>
void Executor<T>::softmax_rows(const Step& step) {
  row_softmax<T>(tile_of(s_tile_, step), switches_, tile_of(p_tile_, step), rows_);
  const auto rows = static_cast<std::size_t>(step.rows.size());
  std::copy_n(rows_.m.begin(), rows, m_.begin() + step.rows.begin);
  std::copy_n(rows_.l.begin(), rows, l_.begin() + step.rows.begin);
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
      if (head_.scores.data == nullptr) {
        const MatrixView<T> s = tile_of(s_tile_, step);
        for (std::int64_t r = 0; r < s.rows; ++r) {
          for (std::int64_t c = 0; c < s.columns; ++c) s(r, c) *= static_cast<T>(problem_.score_scale());
        }
      }
      break;
    case Operation::mask:
      if (!step.idle) tile_mask<T>(problem_, step, tile_of(s_tile_, step));
      break;
    case Operation::softmax: softmax_rows(step); break;
    case Operation::online_softmax:
      tile_online_softmax<T>(tile_of(s_tile_, step), switches_, tile_of(p_tile_, step), rows_);
      break;
    case Operation::rescale:
      tile_rescale<T>(switches_, o_is_normalised_, top(o_tile_, step.rows.size()), rows_);
      o_is_normalised_ = false;
      break;
    case Operation::accumulate:
      tile_accumulate<T>(tile_of(p_tile_, step), top(v_tile_, step.keys.size()),
                         top(o_tile_, step.rows.size()));
      break;
    case Operation::finish:
      tile_finish<T>(top(o_tile_, step.rows.size()), rows_);
      o_is_normalised_ = true;
      break;
    case Operation::store: store(step); break;
    case Operation::discard: break;
  }
}

template <class T>
void Executor<T>::complete() {
  if (algorithm_ == Algorithm::flash2) return;
  for (std::int64_t row = 0; row < problem_.seq; ++row) {
    const auto at = static_cast<std::size_t>(row);
    head_.lse(row, 0) = logsumexp(m_[at], l_[at]);
  }
}

template <class T>
NumberMatrix Executor<T>::read(ChipValue value) const {
  auto& self = const_cast<Executor&>(*this);
  const std::int64_t rows = last_.rows.size();
  const auto matrix = [](MatrixView<const T> view) {
    NumberMatrix numbers{.rows = view.rows, .columns = view.columns};
    for (std::int64_t r = 0; r < view.rows; ++r) {
      // A weight of −0 is shown as what it is worth.
      for (std::int64_t c = 0; c < view.columns; ++c) numbers.numbers.push_back(view(r, c) + T(0));
    }
    return numbers;
  };
  const auto column = [&](const std::vector<T>& statistic) {
    return NumberMatrix{.rows = rows,
                        .columns = 1,
                        .numbers = std::vector<double>(statistic.begin(), statistic.begin() + rows)};
  };
  switch (value) {
    case ChipValue::Q: return matrix(top(self.q_tile_, rows));
    case ChipValue::K: return matrix(top(self.k_tile_, last_.keys.size()));
    case ChipValue::V: return matrix(top(self.v_tile_, last_.keys.size()));
    case ChipValue::S: return matrix(self.tile_of(self.s_tile_, last_));
    case ChipValue::P: return matrix(self.tile_of(self.p_tile_, last_));
    case ChipValue::O: return matrix(top(self.o_tile_, rows));
    case ChipValue::m_before: return column(rows_.m_before);
    case ChipValue::m: return column(rows_.m);
    case ChipValue::row_sum: return column(rows_.row_sum);
    case ChipValue::r: return column(rows_.r);
    case ChipValue::l_before: return column(rows_.l_before);
    case ChipValue::l: return column(rows_.l);
    case ChipValue::L: return column(rows_.logsumexp);
  }
  return {};
}

template class Executor<float>;
template class Executor<double>;

}  // namespace flashsim
