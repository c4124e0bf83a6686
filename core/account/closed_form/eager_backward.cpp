// Eager backward: standard's traffic, and 2N² elements more to scale dS and as many, with N² bytes of Z, for
// dropout. The gradient of a mask that was added is that of the scores: no pass.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/whole_matrix_gradient.hpp"

namespace flashsim {

Prediction predict_eager_backward(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  using enum Operation;
  const EagerPasses& passes = method.passes;
  write_matrix_gradients(w, passes.dropout ? Operand::P_dropped : Operand::P);

  const Formula entries = w.seq * w.kv_seq;
  const Formula tiles = w.query_tiles * w.key_tiles;
  if (passes.dropout) {
    w.hbm_read(Operand::dP, score_matrix(w));
    w.hbm_read(Operand::Z, entries);
    w.hbm_write(Operand::dP, score_matrix(w));
    w.sram_write(load, score_matrix(w) + entries);
    w.sram_read(dropout, score_matrix(w) + entries);
    w.sram_write(dropout, score_matrix(w));
    w.sram_read(store, score_matrix(w));
    w.scale(entries);
    w.steps(Formula(4) * tiles);
  }
  if (passes.scale) {
    w.hbm_read(Operand::dS, score_matrix(w));
    w.hbm_write(Operand::dS, score_matrix(w));
    w.sram_write(load, score_matrix(w));
    w.sram_read(scale, score_matrix(w));
    w.sram_write(scale, score_matrix(w));
    w.sram_read(store, score_matrix(w));
    w.scale(entries);
    w.steps(Formula(3) * tiles);
  }

  w.intermediate(Operand::dP);
  w.intermediate(Operand::dS);
  w.allocated(Operand::dV);
  // Two matrices live while one is made of the other; dQ and dK come when only dS is left.
  if (whole_size(Operand::dP, problem) >=
      whole_size(Operand::dQ, problem) + whole_size(Operand::dK, problem)) {
    w.allocated(Operand::dP);
    w.allocated(Operand::dS);
  } else {
    w.allocated(Operand::dS);
    w.allocated(Operand::dQ);
    w.allocated(Operand::dK);
  }
  w.kernel("value_gradient", w.key_tiles);
  w.kernel("probability_gradient", tiles);
  if (passes.dropout) w.kernel("dropout_gradient", tiles);
  w.kernel("score_gradient", w.query_tiles);
  if (passes.scale) w.kernel("scale_gradient", tiles);
  w.kernel("query_gradient", w.query_tiles);
  w.kernel("key_gradient", w.key_tiles);
  return w.finish();
}

}  // namespace flashsim
