// FlashAttention-2 forward: Q in and O and L out once, K and V once for every query tile that sees
// them. Without a mask that is 2Nd + 2Nd·Tr elements, and N statistics.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_tiles.hpp"

namespace flashsim {

void write_flash2(FigureWriter& w) {
  const VisitedSymbols v(w.sums);
  using enum Operation;

  const Formula query_tensor = w.seq * w.depth * w.stored;
  const Formula visited_keys = v.keys * w.depth * w.stored;
  const Formula statistic = w.seq * w.summed;
  w.hbm_read(Operand::Q, query_tensor);
  w.hbm_read(Operand::K, visited_keys);
  w.hbm_read(Operand::V, visited_keys);
  w.hbm_write(Operand::O, query_tensor);
  w.hbm_write(Operand::L, statistic);

  w.sram_write(load, query_tensor + Formula(2) * visited_keys);
  write_visited_work(w, v);
  w.sram_read(finish, w.seq * w.depth * w.summed);
  w.sram_write(finish, query_tensor);
  w.sram_read(store, query_tensor + statistic);
  w.normalise(w.seq * (w.depth + Formula(1)));

  w.intermediate(Operand::O);
  w.intermediate(Operand::L);
  w.allocated(Operand::O);
  w.allocated(Operand::L);
  w.kernel("attention", w.query_tiles);
  w.steps(Formula(5) * w.query_tiles + Formula(8) * v.pairs);
}

Prediction predict_flash2(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  write_flash2(w);
  return w.finish();
}

}  // namespace flashsim
