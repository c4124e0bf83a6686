// Eager forward: standard's traffic, and 2N² elements more for each pass of its own: scale, and mask where
// there is one. Dropout adds 2N² and N² bytes of Z: it reads P, writes what it keeps of it, and that is what
// the product reads.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/whole_matrix.hpp"

namespace flashsim {

Prediction predict_eager(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  using enum Operation;
  const EagerPasses& passes = method.passes;
  write_whole_matrix(w);

  const Formula entries = w.seq * w.kv_seq;
  const Formula tiles = w.query_tiles * w.key_tiles;
  const bool masks = masks_in_a_pass(problem, method);
  const std::int64_t over_scores = (passes.scale ? 1 : 0) + (masks ? 1 : 0);
  if (over_scores > 0) {
    const Formula moved = Formula(over_scores) * score_matrix(w);
    w.hbm_read(Operand::S, moved);
    w.hbm_write(Operand::S, moved);
    w.sram_write(load, moved);
    w.sram_read(store, moved);
  }
  if (passes.scale) {
    w.sram_read(scale, score_matrix(w));
    w.sram_write(scale, score_matrix(w));
    w.scale(entries);
  }
  if (masks || problem.causal) {
    const Formula looked_at = problem.causal ? masked_entries(w) : entries;
    w.sram_read(mask, looked_at * w.stored);
    w.sram_write(mask, looked_at * w.stored);
    w.mask(looked_at);
  }
  if (passes.dropout) {
    w.hbm_write(Operand::P_dropped, score_matrix(w));
    w.hbm_write(Operand::Z, entries);
    w.hbm_read(Operand::P_dropped, score_matrix(w));
    w.sram_write(load, score_matrix(w));
    w.sram_read(dropout, score_matrix(w));
    w.sram_write(dropout, score_matrix(w) + entries);
    w.sram_read(store, score_matrix(w) + entries);
    w.scale(entries);
    w.steps(Formula(4) * tiles);
  }

  w.intermediate(Operand::S, "scaled, masked");
  w.allocated(Operand::S, "scaled, masked");
  w.intermediate(Operand::P);
  w.allocated(Operand::P);
  if (passes.dropout) {
    for (const Operand kept : {Operand::P_dropped, Operand::Z}) {
      w.intermediate(kept);
      w.allocated(kept);
    }
  }
  w.allocated(Operand::O);
  w.kernel("scores", tiles);
  if (passes.scale) w.kernel("scale", tiles);
  if (masks) w.kernel("mask", tiles);
  w.kernel("softmax", w.query_tiles);
  if (passes.dropout) w.kernel("dropout", tiles);
  w.kernel("output", w.query_tiles);
  // Four steps for a tile of S, three for each pass, two to load and store it, one where the softmax masks
  // it, three for its part of O.
  w.steps(Formula((problem.causal && !masks ? 10 : 9) + 3 * over_scores) * tiles +
          Formula(3) * w.query_tiles);
  return w.finish();
}

}  // namespace flashsim
