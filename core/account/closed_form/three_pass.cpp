// Three passes forward: Q in and O and L out once; for every query tile K three times and V once, or, where S
// is stored, K and V once, and S out once and in twice. Without a mask that is 2Nd + 4Nd·Tr elements, or
// 2Nd + 2Nd·Tr + 3N², and N statistics.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_tiles.hpp"

namespace flashsim {

Prediction predict_three_pass(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  const VisitedSymbols v(w.sums);
  using enum Operation;

  const bool stored = method.algorithm == Algorithm::three_pass_stored;
  const Formula products(stored ? 1 : 3);  // times that S is computed
  const Formula query_tensor = w.seq * w.depth * w.stored;
  const Formula visited_keys = v.keys * w.depth * w.stored;
  const Formula tiles = v.entries * w.stored;
  const Formula statistic = w.seq * w.summed;
  w.hbm_read(Operand::Q, query_tensor);
  w.hbm_read(Operand::K, products * visited_keys);
  w.hbm_read(Operand::V, visited_keys);
  if (stored) {
    w.hbm_write(Operand::S, tiles);
    w.hbm_read(Operand::S, Formula(2) * tiles);
  }
  w.hbm_write(Operand::O, query_tensor);
  w.hbm_write(Operand::L, statistic);

  const Formula keys_loaded = (products + Formula(1)) * visited_keys;
  w.sram_write(load, stored ? query_tensor + keys_loaded + Formula(2) * tiles : query_tensor + keys_loaded);
  w.sram_read(scores, products * (v.rows + v.keys) * w.depth * w.stored);
  w.sram_write(scores, products * tiles);
  w.sram_read(mask, products * v.masked_entries * w.stored);
  w.sram_write(mask, products * v.masked_entries * w.stored);
  w.sram_read(row_maximum, tiles);
  w.sram_read(denominator, tiles);
  w.sram_read(probabilities, tiles);
  w.sram_write(probabilities, tiles);
  w.sram_read(accumulate, tiles + visited_keys + v.rows * w.depth * w.summed);
  w.sram_write(accumulate, v.rows * w.depth * w.summed);
  w.sram_read(store, stored ? query_tensor + statistic + tiles : query_tensor + statistic);

  w.products(Formula(2) * (products + Formula(1)) * v.entries * w.depth);
  w.mask(products * v.masked_entries);
  // Comparison; subtraction and sum; subtraction and division.
  w.softmax(Formula(5) * v.entries);
  w.normalise(w.seq);
  w.exponentials(Formula(2) * v.entries);

  if (stored) {
    w.intermediate(Operand::S);
    w.allocated(Operand::S);
  }
  for (const Operand result : {Operand::O, Operand::L}) {
    w.intermediate(result);
    w.allocated(result);
  }
  w.kernel("attention", w.query_tiles);
  w.steps(Formula(5) * w.query_tiles + Formula(stored ? 14 : 17) * v.pairs);
  return w.finish();
}

}  // namespace flashsim
