// What the algorithms without an online softmax do: the maximum first, the denominator next, and P when both
// are known; or, of a part of the keys, P by the maximum of the part, and in the end what brings the parts
// together.
#include <algorithm>

#include "core/attention/executor.hpp"
#include "core/attention/row_state.hpp"

namespace flashsim {

template <class T>
void Executor<T>::row_maximum(const Step& step) {
  const std::int64_t first = keys_on_chip(step).begin * kPanelWidth<T>;
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    T* m = m_now_.data() + p * kPanelWidth<T>;
    kernels_.maximum(s_.panel(p) + first, keys_seen(step, p), m);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      if (!switches_.subtract_max && m[q] != kMinusInfinity<T>) m[q] = 0;
    }
  });
}

template <class T>
void Executor<T>::denominator(const Step& step) {
  const Range keys = keys_on_chip(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t at = p * kPanelWidth<T>;
    const std::int64_t seen = keys_seen(step, p);
    T* s = s_.panel(p) + keys.begin * kPanelWidth<T>;
    T* l = l_now_.data() + at;
    T* subtracted = scratch_.data() + at;
    T* sum = row_sum_.data() + at;
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q)
      subtracted[q] = reference(m_now_[static_cast<std::size_t>(at + q)]);
    kernels_.exponentials(s, seen, subtracted, sum, problem_.storage);
    std::fill(s + seen * kPanelWidth<T>, s + keys.size() * kPanelWidth<T>, T(-0.0));
    if (switches_.accumulate_in_storage) {
      kernels_.rounded_sum(s, keys.size(), l, problem_.storage);
    } else {
      for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) l[q] += sum[q];
    }
  });
}

template <class T>
void Executor<T>::normalised_probabilities(const Step& step) {
  const std::int64_t count = key_count(step);
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t at = p * kPanelWidth<T>;
    const std::int64_t seen = keys_seen(step, p);
    T* s = s_.panel(p);
    T* scratch = scratch_.data() + at;
    const T* m = m_now_.data() + at;
    const T* l = l_now_.data() + at;
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) scratch[q] = reference(m[q]);
    kernels_.exponentials(s, seen, scratch, row_sum_.data() + at, NumberType::fp64);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) scratch[q] = is_empty_row(m[q], l[q]) ? T(1) : l[q];
    kernels_.divide(s, seen, scratch);
    if (rounds_) kernels_.round(s, seen * kPanelWidth<T>, s, problem_.storage);
    std::fill(s + seen * kPanelWidth<T>, s + count * kPanelWidth<T>, T(-0.0));
  });
}

template <class T>
void Executor<T>::combine_chunk(const Step& step) {
  const auto every_row = static_cast<std::int64_t>(m_now_.size());
  for_panels(step, [&](std::int64_t p, std::int64_t) {
    const std::int64_t at = p * kPanelWidth<T>;
    const T* m_part = m_of_parts_.data() + step.key_tile * every_row + at;
    const T* l_part = row_sum_.data() + at;
    const T* m = m_now_.data() + at;
    T* r = r_.data() + at;
    T* l = l_now_.data() + at;
    T* exponent = scratch_.data() + at;
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) exponent[q] = m_part[q] - reference(m[q]);
    kernels_.exponential(exponent, kPanelWidth<T>, r);
    for (std::int64_t q = 0; q < kPanelWidth<T>; ++q) {
      r[q] = switches_.rescale ? r[q] + T(0) : T(1);  // + 0: no weight becomes a plain zero
      const T brought = r[q] * l_part[q];
      l[q] += brought;
    }
    kernels_.add_multiple(o_part_.panel(p), o_part_.depth, r, o_.panel(p));
    if (!switches_.accumulate_in_storage) return;
    kernels_.round(l, kPanelWidth<T>, l, problem_.storage);
    kernels_.round(o_.panel(p), o_.depth * kPanelWidth<T>, o_.panel(p), problem_.storage);
  });
}

template class Executor<float>;
template class Executor<double>;

}  // namespace flashsim
