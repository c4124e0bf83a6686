// The executor follows a walk and does the arithmetic: on-chip tiles are copies, HBM tensors are the
// caller's, and every step of the walk is one tile operation. Written to be read; it keeps the whole
// score matrix only for the algorithms that do.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/switches.hpp"
#include "core/attention/tile_operations.hpp"
#include "core/base/tensor.hpp"
#include "core/problem/algorithm.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"
#include "core/schedule/chip_values.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// One head in HBM. Either q and k are given, or `scores` [N, Nkv], which are then taken as they are.
template <class T>
struct HeadTensors {
  MatrixView<const T> q;       ///< [N, d]
  MatrixView<const T> k;       ///< [Nkv, d]
  MatrixView<const T> v;       ///< [Nkv, d]
  MatrixView<const T> scores;  ///< [N, Nkv], or without data
  MatrixView<T> o;             ///< [N, d], written
  MatrixView<T> lse;           ///< [N, 1], written
};

/// Executes the walk of one head in T = float or double.
template <class T>
class Executor final : public Listener, public ChipValues {
 public:
  Executor(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
           HeadTensors<T> head);

  void step(const Step& step) override;
  /// After the walk: L of the algorithms that don't store it.
  void complete();

  [[nodiscard]] NumberMatrix read(ChipValue value) const override;

 private:
  void load(const Step& step);
  void store(const Step& step);
  void initialise(const Step& step);
  void reset(const Step& step);
  void compute_scores(const Step& step);
  void softmax_rows(const Step& step);

  /// The part of the on-chip S or P that `step` works on, [rows, keys].
  [[nodiscard]] MatrixView<T> tile_of(Matrix<T>& matrix, const Step& step);
  /// The first rows of an on-chip matrix.
  [[nodiscard]] static MatrixView<T> top(Matrix<T>& matrix, std::int64_t rows);

  Algorithm algorithm_;
  const Problem& problem_;
  Switches switches_;
  HeadTensors<T> head_;
  bool whole_rows_;  // S and P on the chip are row blocks, and columns are absolute keys

  // HBM beyond the caller's tensors.
  Matrix<T> scores_;  // [N, Nkv], for the algorithms that store S; P overwrites it
  std::vector<T> m_;  // [N]
  std::vector<T> l_;  // [N]

  // On the chip.
  Matrix<T> q_tile_, k_tile_, v_tile_, s_tile_, p_tile_, o_tile_;
  RowStatistics<T> rows_;
  bool o_is_normalised_ = false;
  Step last_;
};

extern template class Executor<float>;
extern template class Executor<double>;

}  // namespace flashsim
