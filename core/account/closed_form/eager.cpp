// Eager forward: standard's traffic, and 2N² elements more for each pass of its own: scale, and mask
// where the problem is causal.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/whole_matrix.hpp"

namespace flashsim {

Prediction predict_eager(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  using enum Operation;
  write_whole_matrix(w);

  const Formula passes(problem.causal ? 2 : 1);
  w.hbm_read(Operand::S, passes * score_matrix(w));
  w.hbm_write(Operand::S, passes * score_matrix(w));
  w.sram_write(load, passes * score_matrix(w));
  w.sram_read(store, passes * score_matrix(w));
  w.sram_read(scale, score_matrix(w));
  w.sram_write(scale, score_matrix(w));
  w.scale(w.seq * w.kv_seq);
  if (problem.causal) {
    w.sram_read(mask, masked_entries(w) * w.stored);
    w.sram_write(mask, masked_entries(w) * w.stored);
    w.mask(masked_entries(w));
  }

  w.intermediate(Operand::S, "scaled, masked");
  w.intermediate(Operand::P);
  w.allocated(Operand::S, "scaled, masked");
  w.allocated(Operand::P);
  w.allocated(Operand::O);
  const Formula tiles = w.query_tiles * w.key_tiles;
  w.kernel("scores", tiles);
  w.kernel("scale", tiles);
  if (problem.causal) w.kernel("mask", tiles);
  w.kernel("softmax", w.query_tiles);
  w.kernel("output", w.query_tiles);
  // Four steps for a tile of S, three for each pass, two to load and store it, three for its part of O.
  w.steps((Formula(9) + Formula(3) * passes) * tiles + Formula(3) * w.query_tiles);
  return w.finish();
}

}  // namespace flashsim
