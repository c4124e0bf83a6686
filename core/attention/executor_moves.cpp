// What moves between HBM and the chip: tiles packed on their way in, rounded to the storage type on their way
// out.
#include <algorithm>
#include <limits>

#include "core/attention/executor.hpp"

namespace flashsim {

template <class T>
MatrixView<const T> Executor<T>::side_by_side(MatrixView<const T> from, const Step& step, std::int64_t panel,
                                              std::int64_t count, Range columns) {
  const std::int64_t first = step.rows.begin + panel * kPanelWidth<T>;
  if (problem_.rows_per_query == 1) {
    return {from.row(first) + columns.begin, count, columns.size(), from.stride};
  }
  for (std::int64_t q = 0; q < count; ++q) {
    std::copy_n(from.row(row_in_memory(first + q)) + columns.begin, columns.size(),
                gathered_.data() + q * columns.size());
  }
  return {gathered_.data(), count, columns.size(), columns.size()};
}

template <class T>
void Executor<T>::pack_rows(MatrixView<const T> from, const Step& step, PanelTile& tile) {
  if (from.data == nullptr) return;
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const MatrixView<const T> rows = side_by_side(from, step, p, count, {0, from.columns});
    kernels_.pack(rows.data, rows.stride, count, rows.columns, tile.panel(p));
  });
}

template <class T>
void Executor<T>::unpack_rows(PanelTile& tile, const Step& step, MatrixView<T> to) {
  const bool packed = problem_.rows_per_query > 1;
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const std::int64_t first = step.rows.begin + p * kPanelWidth<T>;
    T* rows = packed ? gathered_.data() : to.row(first);
    const std::int64_t stride = packed ? to.columns : to.stride;
    kernels_.unpack(tile.panel(p), count, to.columns, rows, stride);
    for (std::int64_t q = 0; q < count; ++q) {
      T* row = rows + q * stride;
      if (rounds_) kernels_.round(row, to.columns, row, problem_.storage);
      if (packed) std::copy_n(row, to.columns, to.row(row_in_memory(first + q)));
    }
  });
}

template <class T>
void Executor<T>::store_statistic(const Statistic& from, const Step& step, MatrixView<T> to) {
  for (std::int64_t r = 0; r < step.rows.size(); ++r) {
    to(row_in_memory(step.rows.begin + r), 0) = from[static_cast<std::size_t>(r)];
  }
}

template <class T>
void Executor<T>::load_keys(MatrixView<const T> from, const Step& step, KeyTile& tile) {
  if (from.data == nullptr) return;
  T* to = tile.data.data();
  const std::int64_t valid = step.keys.size() * tile.stride;
  tile.finite = kernels_.copy(from.row(step.keys.begin), valid, to);
  std::fill(to + valid, to + key_count(step) * tile.stride, T(0));
}

template <class T>
void Executor<T>::load_rows(MatrixView<const T> from, const Step& step, KeyTile& tile) {
  tile.finite = true;
  for (std::int64_t r = 0; r < step.rows.size(); ++r) {
    T* to = tile.data.data() + r * tile.stride;
    tile.finite = kernels_.copy(from.row(step.rows.begin + r), from.columns, to) && tile.finite;
    std::fill(to + from.columns, to + tile.stride, T(0));
  }
}

template <class T>
void Executor<T>::load_panels(const T* memory, std::int64_t depth, std::int64_t place, Range part,
                              const Step& step, PanelTile& tile) {
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const T* from = memory + p * kPanelWidth<T> * depth + place * count;
    T* to = tile.panel(p) + part.begin * kPanelWidth<T>;
    if (count == kPanelWidth<T>) {
      std::copy_n(from, part.size() * kPanelWidth<T>, to);
      return;
    }
    for (std::int64_t x = 0; x < part.size(); ++x) {
      std::copy_n(from + x * count, count, to + x * kPanelWidth<T>);
    }
  });
}

template <class T>
void Executor<T>::store_panels(PanelTile& tile, Range part, const Step& step, T* memory, std::int64_t depth,
                               std::int64_t place) {
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const T* from = tile.panel(p) + part.begin * kPanelWidth<T>;
    T* to = memory + p * kPanelWidth<T> * depth + place * count;
    if (count == kPanelWidth<T>) {
      std::copy_n(from, part.size() * kPanelWidth<T>, to);
      return;
    }
    for (std::int64_t x = 0; x < part.size(); ++x) {
      std::copy_n(from + x * kPanelWidth<T>, count, to + x * count);
    }
  });
}

template <class T>
void Executor<T>::load(const Step& step) {
  const auto rows = static_cast<std::size_t>(step.rows.size());
  const Range columns{0, problem_.head_dim};
  switch (step.operand) {
    case Operand::Q:
      pack_rows(head_.q, step, q_);
      if (head_.d_o.data != nullptr) load_rows(head_.q, step, q_rows_);
      break;
    case Operand::K: load_keys(head_.k, step, k_); break;
    case Operand::V: load_keys(head_.v, step, v_); break;
    case Operand::S:
    case Operand::P:
      load_panels(score_rows(scores_, step), row_keys_, place_in_row(step), keys_on_chip(step), step, s_);
      break;
    case Operand::dP:
    case Operand::dS:
      load_panels(score_rows(score_gradients_, step), row_keys_, place_in_row(step), keys_on_chip(step), step,
                  ds_);
      break;
    case Operand::O:
      pack_rows(head_.o, step, o_);
      o_is_normalised_ = true;
      break;
    case Operand::dO:
      pack_rows(head_.d_o, step, d_o_);
      load_rows(head_.d_o, step, d_o_rows_);
      break;
    case Operand::dQ:
    case Operand::dQ_sum:
      if (step.key_tile >= 0 && head_.query_turns != nullptr) {
        head_.query_turns->wait(head_.first_query_place + step.query_tile, step.key_tile);
      }
      load_panels(head_.dq.row(step.rows.begin), problem_.head_dim, 0, columns, step, dq_);
      break;
    case Operand::L: std::copy_n(head_.lse.row(step.rows.begin), rows, lse_.begin()); break;
    case Operand::D: std::copy_n(head_.delta.row(step.rows.begin), rows, delta_.begin()); break;
    case Operand::m: std::copy_n(statistic(m_, step), rows, m_now_.begin()); break;
    case Operand::l: std::copy_n(statistic(l_, step), rows, l_now_.begin()); break;
    case Operand::O_part: load_panels(part_output(step), problem_.head_dim, 0, columns, step, o_part_); break;
    case Operand::L_part: {
      // What the combination subtracts: the largest of a row.
      const T* lse = lse_parts_.data() + part_row(step);
      for (std::size_t r = 0; r < rows; ++r) m_now_[r] = std::max(m_now_[r], lse[r]);
      break;
    }
    case Operand::m_part: {
      T* m = m_of_parts_.data() + step.key_tile * static_cast<std::int64_t>(m_now_.size());
      std::copy_n(m_parts_.data() + part_row(step), rows, m);
      for (std::size_t r = 0; r < rows; ++r) m_now_[r] = std::max(m_now_[r], m[r]);
      break;
    }
    case Operand::l_part: std::copy_n(l_parts_.data() + part_row(step), rows, row_sum_.begin()); break;
    default: break;
  }
}

template <class T>
void Executor<T>::store(const Step& step) {
  const auto rows = static_cast<std::size_t>(step.rows.size());
  const Range columns{0, problem_.head_dim};
  const auto store_scores = [&](PanelTile& tile, AlignedVector<T>& matrix) {
    const Range keys = keys_on_chip(step);
    if (rounds_) {
      for_panels(step, [&](std::int64_t p, std::int64_t) {
        T* on_chip = tile.panel(p) + keys.begin * kPanelWidth<T>;
        kernels_.round(on_chip, keys.size() * kPanelWidth<T>, on_chip, problem_.storage);
      });
    }
    store_panels(tile, keys, step, score_rows(matrix, step), row_keys_, place_in_row(step));
  };
  switch (step.operand) {
    case Operand::S:
    case Operand::P: store_scores(s_, scores_); break;
    case Operand::dP:
    case Operand::dS: store_scores(ds_, score_gradients_); break;
    case Operand::O: unpack_rows(o_, step, head_.o); break;
    case Operand::dQ:
    case Operand::dQ_sum:
      if (step.key_tile < 0) {
        unpack_rows(dq_, step, head_.dq);
        break;
      }
      store_panels(dq_, columns, step, head_.dq.row(step.rows.begin), problem_.head_dim, 0);
      if (head_.query_turns != nullptr) head_.query_turns->done(head_.first_query_place + step.query_tile);
      break;
    case Operand::dK:
      if (head_.key_turns != nullptr) {
        head_.key_turns->wait(head_.first_key_place + step.key_tile, head_.turn);
      }
      add_to_group(dk_, head_.dk, step);
      break;
    case Operand::dV:
      add_to_group(dv_, head_.dv, step);
      if (head_.key_turns != nullptr) head_.key_turns->done(head_.first_key_place + step.key_tile);
      break;
    case Operand::L: store_statistic(lse_, step, head_.lse); break;
    case Operand::O_part: store_panels(o_, columns, step, part_output(step), problem_.head_dim, 0); break;
    case Operand::L_part: std::copy_n(lse_.begin(), rows, lse_parts_.data() + part_row(step)); break;
    case Operand::D: std::copy_n(delta_.begin(), rows, head_.delta.row(step.rows.begin)); break;
    case Operand::m: std::copy_n(m_now_.begin(), rows, statistic(m_, step)); break;
    case Operand::l: std::copy_n(l_now_.begin(), rows, statistic(l_, step)); break;
    case Operand::m_part: std::copy_n(m_now_.begin(), rows, m_parts_.data() + part_row(step)); break;
    case Operand::l_part: std::copy_n(l_now_.begin(), rows, l_parts_.data() + part_row(step)); break;
    default: break;
  }
}

template <class T>
void Executor<T>::initialise(const Step& step) {
  switch (step.operand) {
    case Operand::O:
    case Operand::dQ:
    case Operand::dQ_sum: {
      const MatrixView<T> matrix = step.operand == Operand::O ? head_.o : head_.dq;
      for (std::int64_t r = step.rows.begin; r < step.rows.end; ++r) {
        std::fill_n(matrix.row(r), matrix.columns, T(0));
      }
      break;
    }
    case Operand::m:
      std::fill_n(statistic(m_, step), step.rows.size(), -std::numeric_limits<T>::infinity());
      break;
    default: std::fill_n(statistic(l_, step), step.rows.size(), T(0));
  }
}

template <class T>
void Executor<T>::reset(const Step& step) {
  switch (step.operand) {
    case Operand::dQ: std::fill(dq_.data.begin(), dq_.data.end(), T(0)); break;
    case Operand::dK:
    case Operand::dV:
      std::fill(dk_.data.begin(), dk_.data.end(), T(0));
      std::fill(dv_.data.begin(), dv_.data.end(), T(0));
      break;
    default:
      std::fill(o_.data.begin(), o_.data.end(), T(0));
      std::fill(m_now_.begin(), m_now_.end(), -std::numeric_limits<T>::infinity());
      std::fill(l_now_.begin(), l_now_.end(), T(0));
      o_is_normalised_ = false;
  }
}

template class Executor<float>;
template class Executor<double>;

}  // namespace flashsim
