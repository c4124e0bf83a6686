// Standard backward: 7N² + 8Nd elements. P is read twice, dP written and read once, dS written once and read
// twice; dS overwrites dP.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/whole_matrix_gradient.hpp"

namespace flashsim {

Prediction predict_standard_backward(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  write_matrix_gradients(w, Operand::P);
  w.intermediate(Operand::dP, "dS overwrites it");
  w.allocated(Operand::dP, "dS overwrites it");
  for (const Operand gradient : {Operand::dV, Operand::dQ, Operand::dK}) w.allocated(gradient);
  w.kernel("value_gradient", w.key_tiles);
  w.kernel("probability_gradient", w.query_tiles * w.key_tiles);
  w.kernel("score_gradient", w.query_tiles);
  w.kernel("query_gradient", w.query_tiles);
  w.kernel("key_gradient", w.key_tiles);
  return w.finish();
}

}  // namespace flashsim
