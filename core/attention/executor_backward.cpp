// The operations of the backward walks, and the order in which tasks add to what they share.
#include <algorithm>
#include <limits>
#include <thread>

#include "core/attention/executor.hpp"

namespace flashsim {

void Turns::wait(std::int64_t place, std::int64_t turn) {
  const auto& next = next_[static_cast<std::size_t>(place)];
  while (next.load(std::memory_order_acquire) != turn) std::this_thread::yield();
}

void Turns::done(std::int64_t place) {
  next_[static_cast<std::size_t>(place)].fetch_add(1, std::memory_order_release);
}

template <class T>
void Executor<T>::row_dots(const Step& step) {
  const bool of_scores = step.operand == Operand::P;
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    T* delta = delta_.data() + p * kPanelWidth<T>;
    if (of_scores) {
      kernels_.dot(s_.panel(p), ds_.panel(p), problem_.kv_seq, delta);
    } else {
      kernels_.dot(o_.panel(p), d_o_.panel(p), problem_.head_dim, delta);
    }
  });
}

template <class T>
void Executor<T>::probabilities(const Step& step) {
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t at = p * kPanelWidth<T>;
    const std::int64_t seen = keys_seen(step, p);
    // In an empty row L is −∞, and so is every score, which has no weight whatever is subtracted.
    kernels_.exponentials(s_.panel(p), seen, lse_.data() + at, row_sum_.data() + at, NumberType::fp64);
    std::fill(s_.panel(p) + seen * kPanelWidth<T>, s_.panel(p) + key_count(step) * kPanelWidth<T>, T(-0.0));
    if (rounds_) {
      kernels_.round(s_.panel(p), key_count(step) * kPanelWidth<T>, p_.panel(p), problem_.storage);
    }
  });
}

template <class T>
void Executor<T>::probability_gradient(const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    kernels_.product({.c = ds_.panel(p) + keys.begin * kPanelWidth<T>,
                      .c_stride = kPanelWidth<T>,
                      .a = v_.data.data(),
                      .a_row = v_.stride,
                      .a_step = 1,
                      .b = d_o_.panel(p),
                      .b_stride = kPanelWidth<T>,
                      .rows = keys_seen(step, p),
                      .columns = kPanelWidth<T>,
                      .depth = problem_.head_dim,
                      .mode = Product<T>::Mode::assign});
  });
}

template <class T>
void Executor<T>::score_gradient(const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t first = keys.begin * kPanelWidth<T>;
    kernels_.score_gradient(s_.panel(p) + first, ds_.panel(p) + first, keys.size(),
                            delta_.data() + p * kPanelWidth<T>, problem_.storage);
  });
}

template <class T>
void Executor<T>::query_gradient(const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const Product<T> product{.c = dq_.panel(p),
                             .c_stride = kPanelWidth<T>,
                             .a = k_.data.data(),
                             .a_row = 1,
                             .a_step = k_.stride,
                             .b = ds_.panel(p) + keys.begin * kPanelWidth<T>,
                             .b_stride = kPanelWidth<T>,
                             .rows = problem_.head_dim,
                             .columns = kPanelWidth<T>,
                             .depth = keys_seen(step, p),
                             .mode = Product<T>::Mode::add_scaled,
                             .factor = static_cast<T>(problem_.score_scale())};
    if (k_.finite) {
      kernels_.product(product);
    } else {
      kernels_.careful_product(product, WeightsIn::b, NumberType::fp64);
    }
  });
}

template <class T>
void Executor<T>::add_key_side(KeyTile& sum, PanelTile& weights, const KeyTile& rows, T factor,
                               const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t count) {
    const Product<T> product{.c = sum.data.data(),
                             .c_stride = sum.stride,
                             .a = weights.panel(p) + keys.begin * kPanelWidth<T>,
                             .a_row = kPanelWidth<T>,
                             .a_step = 1,
                             .b = rows.data.data() + p * kPanelWidth<T> * rows.stride,
                             .b_stride = rows.stride,
                             .rows = keys_seen(step, p),
                             .columns = sum.stride,
                             .depth = count,
                             .mode = Product<T>::Mode::add_scaled,
                             .factor = factor};
    if (rows.finite) {
      kernels_.product(product);
    } else {
      kernels_.careful_product(product, WeightsIn::a, NumberType::fp64);
    }
  });
}

template <class T>
void Executor<T>::add_to_group(const KeyTile& sum, MatrixView<T> total, const Step& step) {
  for (std::int64_t r = 0; r < step.keys.size(); ++r) {
    const T* from = sum.data.data() + r * sum.stride;
    T* to = total.row(step.keys.begin + r);
    for (std::int64_t x = 0; x < total.columns; ++x) to[x] += from[x];
  }
}

template <class T>
void Executor<T>::convert_query_gradient(Range rows) {
  const Step step{.operation = Operation::load, .operand = Operand::dQ, .rows = rows};
  load(step);
  store(step);
}

template class Executor<float>;
template class Executor<double>;

}  // namespace flashsim
