// FlashAttention backward: K and V in and dK and dV out once, and for every visited pair Q_i, O_i, dO_i,
// dQ_i, l_i, m_i in and dQ_i out. Without a mask that is 4Nd + Tc(5Nd + 2N) elements, and Nd to start with.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_gradient_tiles.hpp"

namespace flashsim {

Prediction predict_flash1_backward(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  const VisitedSymbols v(w.sums);
  using enum Operation;

  const Formula reached = Formula("keys reached", w.sums.keys_reached) * w.depth * w.stored;
  const Formula visited_rows = v.rows * w.depth * w.stored;
  const Formula visited_statistic = v.rows * w.summed;
  const Formula keys = w.kv_seq * w.depth * w.stored;
  w.initial_write(Operand::dQ, w.seq * w.depth * w.stored);
  for (const Operand operand : {Operand::K, Operand::V}) w.hbm_read(operand, reached);
  for (const Operand operand : {Operand::Q, Operand::O, Operand::dO, Operand::dQ}) {
    w.hbm_read(operand, visited_rows);
  }
  for (const Operand operand : {Operand::l, Operand::m}) w.hbm_read(operand, visited_statistic);
  w.hbm_write(Operand::dQ, visited_rows);
  w.hbm_write(Operand::dK, keys);
  w.hbm_write(Operand::dV, keys);

  w.sram_write(load, Formula(2) * reached + Formula(4) * visited_rows + Formula(2) * visited_statistic);
  w.sram_read(store, visited_rows + Formula(2) * keys);
  write_visited_score_gradient(w, v, 2);
  write_visited_query_gradient(w, v);
  write_visited_key_value_gradients(w, v);
  w.sram_read(row_dot, Formula(2) * visited_rows);
  w.sram_write(row_dot, visited_statistic);
  w.softmax(Formula(2) * v.rows * w.depth);
  w.recomputed(Formula(2) * v.entries * w.depth);

  for (const Operand gradient : {Operand::dQ, Operand::dK, Operand::dV}) {
    w.intermediate(gradient);
    w.allocated(gradient);
  }
  w.kernel("gradients", Formula(1));
  w.steps(w.query_tiles + Formula(2) * Formula("tiles reached", w.sums.tiles_reached) +
          Formula(3) * w.key_tiles + Formula(17) * v.pairs);
  return w.finish();
}

}  // namespace flashsim
