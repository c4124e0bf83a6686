// FlashAttention forward: K and V in once, and for every visited pair Q_i, O_i, l_i, m_i in and O_i,
// l_i, m_i out. Without a mask that is 2Nd + Tc(3Nd + 4N) elements, and Nd + 2N to start with.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_tiles.hpp"

namespace flashsim {

Prediction predict_flash1(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  const VisitedSymbols v(w.sums);
  using enum Operation;

  const Formula reached = Formula("keys reached", w.sums.keys_reached) * w.depth * w.stored;
  const Formula visited_rows = v.rows * w.depth * w.stored;
  const Formula visited_statistic = v.rows * w.summed;
  w.initial_write(Operand::O, w.seq * w.depth * w.stored);
  w.initial_write(Operand::l, w.seq * w.summed);
  w.initial_write(Operand::m, w.seq * w.summed);
  w.hbm_read(Operand::Q, visited_rows);
  w.hbm_read(Operand::K, reached);
  w.hbm_read(Operand::V, reached);
  w.hbm_read(Operand::O, visited_rows);
  w.hbm_write(Operand::O, visited_rows);
  for (const Operand statistic : {Operand::l, Operand::m}) {
    w.hbm_read(statistic, visited_statistic);
    w.hbm_write(statistic, visited_statistic);
  }

  w.sram_write(load, Formula(2) * reached + Formula(2) * visited_rows + Formula(2) * visited_statistic);
  write_visited_work(w, v);
  w.sram_read(finish, v.rows * w.depth * w.summed);
  w.sram_write(finish, visited_rows);
  w.sram_read(store, visited_rows + Formula(2) * visited_statistic);
  w.normalise(v.rows * (w.depth + Formula(1)));

  for (const Operand state : {Operand::O, Operand::l, Operand::m}) {
    w.intermediate(state);
    w.allocated(state);
  }
  w.kernel("attention", Formula(1));
  w.steps(Formula(3) * w.query_tiles + Formula(2) * Formula("tiles reached", w.sums.tiles_reached) +
          Formula(14) * v.pairs);
  return w.finish();
}

}  // namespace flashsim
