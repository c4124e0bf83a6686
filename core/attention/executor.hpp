// The executor follows a walk and does the arithmetic: loading a tile packs it into on-chip memory, HBM
// tensors are the caller's, and every step of the walk is one tile operation in vector code
// (core/attention/vector). What a walk keeps in HBM beside the caller's tensors (S and P, m and l, the
// parts of O, and dQ while it is summed) lies in panels too, without padding.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/attention/vector/panel.hpp"
#include "core/attention/vector/tile_kernels.hpp"
#include "core/base/tensor.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"
#include "core/schedule/chip_values.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// Whose turn it is to add to something that several tasks add to in order.
class Turns {
 public:
  explicit Turns(std::int64_t places) : next_(static_cast<std::size_t>(places)) {}
  /// Waits until it is `turn`'s turn at `place`.
  void wait(std::int64_t place, std::int64_t turn);
  void done(std::int64_t place);

 private:
  std::vector<std::atomic<std::int64_t>> next_;
};

/// One head in HBM, each tensor's rows one after another, or the heads of a group that are packed into one,
/// each head's rows one after another (packed_heads). Either q and k are given, or `scores` [N, Nkv], which
/// are then taken as they are.
template <class T>
struct HeadTensors {
  MatrixView<const T> q;       ///< [N, d]
  MatrixView<const T> k;       ///< [Nkv, d]
  MatrixView<const T> v;       ///< [Nkv, d]
  MatrixView<const T> scores;  ///< [N, Nkv], or without data
  MatrixView<T> o;             ///< [N, d], written forward, read backward
  MatrixView<T> lse;           ///< [N, 1], written forward, read backward

  // Backward.
  MatrixView<const T> d_o;  ///< [N, d]
  MatrixView<T> dq;         ///< [N, d], dense: it holds the sums in panels until converted
  MatrixView<T> dk, dv;     ///< [Nkv, d], added to
  MatrixView<T> delta;      ///< [N, 1], D
  Turns* query_turns =
      nullptr;  ///< which key tile may add to dQ next, from `first_query_place` on a query tile
  Turns* key_turns = nullptr;  ///< which head may add to dK and dV next, from `first_key_place` on a key tile
  std::int64_t first_query_place = 0;
  std::int64_t first_key_place = 0;
  std::int64_t turn = 0;  ///< of this head among those of its group
};

/// Executes walks, whole or in parts, in T = float or double. Keeps its memory from one to the next.
template <class T>
class Executor final : public Listener, public ChipValues {
 public:
  enum class Pass { forward, backward };

  /// Takes all memory that walks of up to `query_tiles` query tiles will need. One that is `watched` computes
  /// what a masked key hides as well.
  Executor(const Problem& problem, const Method& method, Switches switches, Pass pass,
           std::int64_t query_tiles, bool watched = false);

  /// The walk that comes is that of `head`, and begins with `first_query_tile`.
  void begin(const HeadTensors<T>& head, std::int64_t first_query_tile);
  void step(const Step& step) override;
  /// After a forward walk, in parts or whole: L of `rows`, for the algorithms that don't store it.
  void complete(Range rows);
  /// The sums of dQ in `rows`, which are one query tile, become dQ.
  void convert_query_gradient(Range rows);

  [[nodiscard]] NumberMatrix read(ChipValue value) const override;

 private:
  /// A query tile on the chip: its panels one after another, each [depth][W].
  struct PanelTile {
    AlignedVector<T> data;
    std::int64_t depth = 0;
    void resize(std::int64_t panels, std::int64_t new_depth) {
      depth = new_depth;
      data.resize(static_cast<std::size_t>(panels * depth * kPanelWidth<T>));
    }
    [[nodiscard]] T* panel(std::int64_t p) { return data.data() + p * depth * kPanelWidth<T>; }
  };
  /// A key tile on the chip, row-major.
  struct KeyTile {
    AlignedVector<T> data;
    std::int64_t stride = 0;
    bool finite = true;
    void resize(std::int64_t rows, std::int64_t columns) {
      stride = columns;
      data.resize(static_cast<std::size_t>(rows * columns));
    }
  };
  /// One number a row of the query tile.
  using Statistic = AlignedVector<T>;

  void load(const Step& step);
  void store(const Step& step);
  void initialise(const Step& step);
  void reset(const Step& step);

  void compute_scores(const Step& step);
  void mask_scores(const Step& step);
  void softmax_rows(const Step& step);
  void online_softmax(const Step& step);
  void rescale(const Step& step);
  void accumulate(const Step& step);
  void finish(const Step& step);
  void combine_part(const Step& step);

  void row_maximum(const Step& step);
  void denominator(const Step& step);
  void normalised_probabilities(const Step& step);
  void combine_chunk(const Step& step);

  void row_dots(const Step& step);
  void probabilities(const Step& step);
  void probability_gradient(const Step& step);
  void score_gradient(const Step& step);
  void query_gradient(const Step& step);
  void add_key_side(KeyTile& sum, PanelTile& weights, const KeyTile& rows, T factor, const Step& step);
  void add_to_group(const KeyTile& sum, MatrixView<T> total, const Step& step);

  /// Calls `work(panel number, its queries)` for every panel of the step's rows.
  template <class Work>
  void for_panels(const Step& step, Work work) {
    for (std::int64_t p = 0; p * kPanelWidth<T> < step.rows.size(); ++p) {
      work(p, std::min(kPanelWidth<T>, step.rows.size() - p * kPanelWidth<T>));
    }
  }
  /// Where row `row` of the walk lies in a tensor whose rows are those of all its heads one after another.
  [[nodiscard]] std::int64_t row_in_memory(std::int64_t row) const {
    const std::int64_t group = problem_.rows_per_query;
    return group == 1 ? row : row % group * (problem_.seq / group) + row / group;
  }
  /// Moves the statistic of the step's rows to the caller's tensor.
  void store_statistic(const Statistic& from, const Step& step, MatrixView<T> to);
  /// The panel's rows of `from` as they lie side by side, gathered where they don't.
  MatrixView<const T> side_by_side(MatrixView<const T> from, const Step& step, std::int64_t panel,
                                   std::int64_t count, Range columns);
  void pack_rows(MatrixView<const T> from, const Step& step, PanelTile& tile);
  void unpack_rows(PanelTile& tile, const Step& step, MatrixView<T> to);
  void load_keys(MatrixView<const T> from, const Step& step, KeyTile& tile);
  void load_rows(MatrixView<const T> from, const Step& step, KeyTile& tile);
  /// Moves the tile of `step` between panels of `depth` in HBM, `place` of the depth on, and `part` of those
  /// on the chip.
  void load_panels(const T* memory, std::int64_t depth, std::int64_t place, Range part, const Step& step,
                   PanelTile& tile);
  void store_panels(PanelTile& tile, Range part, const Step& step, T* memory, std::int64_t depth,
                    std::int64_t place);

  /// Where the keys of `step` lie in an on-chip S or P.
  [[nodiscard]] Range keys_on_chip(const Step& step) const;
  /// Where they begin in a row of an HBM score matrix.
  [[nodiscard]] std::int64_t place_in_row(const Step& step) const {
    return whole_rows_ ? keys_on_chip(step).begin : step.keys.begin;
  }
  /// The keys that the chip works on: with unmasked padding, those that fill up the tile too.
  [[nodiscard]] std::int64_t key_count(const Step& step) const;
  /// The first of those keys that some query of the panel sees; the rest are masked, and masked keys of a
  /// tiled algorithm take no arithmetic: −∞ and no weight stand in their place.
  [[nodiscard]] std::int64_t keys_seen(const Step& step, std::int64_t panel) const;
  /// Row `step.rows.begin` in the memory of its part of the keys: of the query chunk, where tiles are chunks.
  [[nodiscard]] std::int64_t part_row(const Step& step) const {
    if (!chunked_) return step.part * rows_ + step.rows.begin - first_row_;
    return step.key_tile * chunk_rows_ + step.rows.begin - step.query_tile * tiling_.query_rows;
  }
  /// A whole-row block of an HBM score matrix.
  [[nodiscard]] T* score_rows(AlignedVector<T>& matrix, const Step& step);
  [[nodiscard]] T* statistic(AlignedVector<T>& all, const Step& step) {
    return all.data() + (step.rows.begin - first_row_);
  }
  /// The step's rows of its part's output.
  [[nodiscard]] T* part_output(const Step& step) {
    return o_parts_.data() + part_row(step) * problem_.head_dim;
  }
  [[nodiscard]] NumberType sum_type() const {
    return switches_.accumulate_in_storage ? problem_.storage : NumberType::fp64;
  }

  Algorithm algorithm_;
  const Problem& problem_;
  Tiling tiling_;
  T score_factor_;  // what the product Q Kᵀ multiplies by: 1 where the scale is a pass of its own
  Switches switches_;
  HeadTensors<T> head_;
  const TileKernels<T>& kernels_;
  bool chunked_;                // tiles are chunks: rows of S and P hold the keys of one
  bool whole_rows_;             // S and P on the chip are row blocks: all keys of a row that HBM has
  std::int64_t chunk_rows_;     // rows of a query tile, or of all there are
  std::int64_t row_keys_;       // keys of a row of S in HBM
  bool watched_;                // what is on the chip may be read
  bool rounds_;                 // the storage type is narrower than T
  std::int64_t rows_;           // that the walk or part has at most
  std::int64_t first_row_ = 0;  // of the walk or part

  // HBM beyond the caller's tensors.
  AlignedVector<T> scores_, score_gradients_;  // [N, Nkv]; P overwrites S, and dS dP
  AlignedVector<T> m_, l_;                     // [N]
  AlignedVector<T> o_parts_;                   // [S, N, d], or of chunks [Tc, chunk rows, d]
  AlignedVector<T> lse_parts_;                 // [S, N]
  AlignedVector<T> m_parts_, l_parts_;         // [Tc, chunk rows]

  // On the chip.
  PanelTile q_, s_, o_, o_part_, d_o_, dq_, p_, ds_;
  AlignedVector<T> gathered_;  // rows of a panel on their way from or to packed heads
  KeyTile k_, v_, q_rows_, d_o_rows_, dk_, dv_;
  AlignedVector<T> m_of_parts_;  // [Tc, rows of a query tile]
  Statistic m_before_, m_now_, row_sum_, r_, l_before_, l_now_, lse_, delta_, scratch_;
  bool o_is_normalised_ = false;
  Step last_;
};

extern template class Executor<float>;
extern template class Executor<double>;

}  // namespace flashsim
