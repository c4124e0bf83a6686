#include "core/study/run_inputs.hpp"

#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/attention/attend.hpp"
#include "core/base/npy.hpp"

namespace flashsim {
namespace {

template <class T>
bool same_shape(const Tensor4<T>& a, const Tensor4<T>& b) {
  return a.batch() == b.batch() && a.heads() == b.heads() && a.rows() == b.rows() &&
         a.columns() == b.columns();
}

/// Fills `tensor`, which has the shape that the file had.
template <class T>
Outcome read_into(Tensor4<T>& tensor, const std::string& path) {
  auto read = read_npy<T>(path);
  if (!read) return read.error();
  if (!same_shape(*read, tensor)) return Error{fmt::format("'{}' has changed its shape meanwhile", path), ""};
  tensor = std::move(read).value();
  return std::nullopt;
}

}  // namespace

template <class T>
Result<RunInputs<T>> run_inputs(const RunPlan& plan, const std::function<void(double)>& progress) {
  const Problem& p = plan.problem;
  const TensorSource& source = plan.tensors;
  RunInputs<T> inputs;
  auto& [q, k, v, scores] = inputs.qkv;
  // Each tensor that is made, and the file that it is read from, if any.
  struct Wanted {
    Tensor4<T>* tensor;
    const std::string* file;
  };
  std::vector<Wanted> wanted;
  if (source.scenario && !source.qkv_drawn()) {
    inputs.qkv = converted<T>(source.scenario->inputs);
  } else {
    q = Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim);
    k = Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim);
    v = Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim);
    const bool files = source.files.has_value();
    wanted = {{&q, files ? &source.files->q : nullptr},
              {&k, files ? &source.files->k : nullptr},
              {&v, files ? &source.files->v : nullptr}};
  }
  if (plan.backward) {
    inputs.d_o = Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim);
    wanted.push_back({&inputs.d_o, source.d_o ? &*source.d_o : nullptr});
  }
  std::mt19937_64 generator(source.random.seed);
  const auto tell = [&](std::size_t tensors, double of_next) {
    if (progress) progress((static_cast<double>(tensors) + of_next) / static_cast<double>(wanted.size()));
  };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    tell(i, 0);
    if (wanted[i].file == nullptr) {
      draw(generator, source.random.magnitude, *wanted[i].tensor, [&](double done) { tell(i, done); });
    } else if (auto error = read_into(*wanted[i].tensor, *wanted[i].file)) {
      return *error;
    }
  }
  for (Tensor4<T>* tensor : {&q, &k, &v, &scores, &inputs.d_o}) round_to_storage(p, *tensor);
  return inputs;
}

template Result<RunInputs<float>> run_inputs(const RunPlan&, const std::function<void(double)>&);
template Result<RunInputs<double>> run_inputs(const RunPlan&, const std::function<void(double)>&);

}  // namespace flashsim
