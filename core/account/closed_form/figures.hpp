// The pen with which the closed forms are written: it enters a formula under a figure's name, in the
// tally and in the explanations at once.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/account/closed_form/visited.hpp"
#include "core/account/prediction.hpp"

namespace flashsim {

class FigureWriter {
 public:
  FigureWriter(const Problem& problem, const Method& method, Explain explain);
  /// A symbol of the formulas, named where they are explained.
  [[nodiscard]] Formula symbol(const char* name, Count value) const;

  // The symbols of the formulas. Sums run over the tile pairs of one head.
  Formula heads;        ///< B·H: the walks
  Formula seq;          ///< N
  Formula kv_seq;       ///< Nkv
  Formula depth;        ///< d
  Formula stored;       ///< e: bytes of a stored element
  Formula summed;       ///< a: bytes of an accumulated element
  Formula query_tiles;  ///< Tr
  Formula key_tiles;    ///< Tc
  Visited sums;

  // Enter a formula (in bytes, without the factor B·H, which every figure has).
  void hbm_read(Operand operand, const Formula& bytes);
  void hbm_write(Operand operand, const Formula& bytes);
  void initial_write(Operand operand, const Formula& bytes);
  /// What crosses into the SMs where that is more than HBM traffic; without a call the two are equal.
  void sm_read(Operand operand, const Formula& bytes);
  void sram_read(Operation operation, const Formula& bytes);
  void sram_write(Operation operation, const Formula& bytes);
  void products(const Formula& flops);
  void scale(const Formula& flops);
  void mask(const Formula& flops);
  void softmax(const Formula& flops);
  void rescale(const Formula& flops);
  void normalise(const Formula& flops);
  void exponentials(const Formula& count);
  void kernel(std::string_view name, const Formula& blocks);
  /// The same of a kernel that is launched so many times, with so many blocks a head altogether.
  void launches(std::string_view name, const Formula& launches, const Formula& blocks);
  void steps(const Formula& steps);
  /// FLOPs of products that are computed again because forward kept nothing that would spare them.
  void recomputed(const Formula& flops);
  void pattern(const KeptBlocks& kept) { prediction_.pattern = kept; }
  /// Alive at a peak: the whole tensor, or so many bytes over all heads.
  void intermediate(Operand operand, std::string_view note = "");
  void intermediate(Operand operand, Bytes size, std::string_view note);
  void allocated(Operand operand, std::string_view note = "");
  void allocated(Operand operand, Bytes size, std::string_view note);

  /// The finished prediction, with the totals that follow from its lines.
  Prediction finish();

 private:
  /// Enters B·H · `one_head` under the figure's name, which is made of `parts`, and gives its value.
  Count enter(std::initializer_list<std::string_view> parts, const Formula& one_head);

  const Problem& problem_;
  Explain explain_;
  Prediction prediction_;
  std::array<bool, kOperands.size()> sm_read_given_{};
};

}  // namespace flashsim
