// Forward and backward in one run, as the tests of gradients need it.
#pragma once

#include "tests/attention/ways.hpp"

namespace flashsim::test {

/// The algorithms that go backward, each at several tilings.
inline std::vector<Way> backward_ways(std::initializer_list<Tiling> tilings) {
  std::vector<Way> all = ways(tilings);
  std::erase_if(all, [](const Way& way) { return !executes_backward(way.algorithm); });
  return all;
}

/// A problem, its tensors and the gradient of its output, all as the storage type holds them.
template <class T>
struct BackwardGiven {
  Problem problem;
  Inputs<T> inputs;
  Tensor4<T> d_o;
};

inline Tensor4<double> drawn_output_gradient(const Problem& p, RandomNumbers& random) {
  Tensor4<double> d_o(p.batch, p.heads, p.seq, p.head_dim);
  random.fill(d_o, 1);
  return d_o;
}

template <class T>
BackwardGiven<T> stored(const Given& given, const Tensor4<double>& d_o) {
  BackwardGiven<T> all{given.problem, converted<T>(given.inputs), converted_tensor<T>(d_o)};
  for (Tensor4<T>* tensor : {&all.inputs.q, &all.inputs.k, &all.inputs.v, &all.d_o}) {
    round_to_storage(given.problem, *tensor);
  }
  return all;
}

/// The same, stored in T.
template <class T>
BackwardGiven<T> in_type(Given given, const Tensor4<double>& d_o) {
  given.problem.storage = number_type<T>();
  return stored<T>(given, d_o);
}

template <class T>
Gradients<T> gradients_of(const Way& way, const BackwardGiven<T>& given, const Execution& execution = {},
                          Switches switches = {}) {
  const Outputs<T> outputs =
      attend<T>(given.problem, way.method(), switches, given.inputs, {.threads = execution.threads});
  return attend_backward<T>(way.algorithm, given.problem, way.tiling, switches, given.inputs, outputs,
                            given.d_o, execution);
}

template <class T>
bool same_bits(const Gradients<T>& a, const Gradients<T>& b) {
  return same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) && same_bits(a.dv, b.dv);
}

}  // namespace flashsim::test
