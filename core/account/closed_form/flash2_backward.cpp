// FlashAttention-2 backward: D from O and dO; K and V in and dK and dV out once, and for every visited pair
// Q_i, dO_i, L_i, D_i and the sum of dQ_i in, and that sum out; dQ from its sum. Deterministic, the sum stays
// on the chip: a kernel over query tiles reads Q, dO, L and D once, and K and V for every visited pair.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_gradient_tiles.hpp"

namespace flashsim {
namespace {

using enum Operation;

/// dQ is a sum in HBM, of its own where the accumulation type isn't the storage type, and converted then.
void write_summed_query_gradient(FigureWriter& w, const VisitedSymbols& v, bool apart, bool in_l2) {
  const Operand sum = apart ? Operand::dQ_sum : Operand::dQ;
  const Formula visited_sum = v.rows * w.depth * w.summed;
  w.initial_write(sum, w.seq * w.depth * w.summed);
  w.hbm_read(sum, visited_sum);
  w.hbm_write(sum, visited_sum);
  if (in_l2) {
    // What the papers' model reads doesn't cross into an SM, but for the conversion.
    w.sm_read(sum, apart ? w.seq * w.depth * w.summed : Formula(0));
  } else {
    w.sram_write(load, visited_sum);
  }
  w.sram_read(store, visited_sum);
  write_visited_query_gradient(w, v);
  w.kernel("gradients", w.key_tiles);
  w.steps(w.query_tiles + Formula(3) * v.pairs);
  if (!apart) return;
  w.hbm_read(sum, w.seq * w.depth * w.summed);
  w.hbm_write(Operand::dQ, w.seq * w.depth * w.stored);
  w.sram_write(load, w.seq * w.depth * w.summed);
  w.sram_read(store, w.seq * w.depth * w.stored);
  w.kernel("conversion", w.query_tiles);
  w.steps(Formula(2) * w.query_tiles);
}

/// dQ has a kernel of its own.
void write_apart_query_gradient(FigureWriter& w, const VisitedSymbols& v) {
  const Formula queries = w.seq * w.depth * w.stored;
  const Formula statistic = w.seq * w.summed;
  const Formula visited_keys = v.keys * w.depth * w.stored;
  for (const Operand operand : {Operand::Q, Operand::dO}) w.hbm_read(operand, queries);
  for (const Operand operand : {Operand::L, Operand::D}) w.hbm_read(operand, statistic);
  for (const Operand operand : {Operand::K, Operand::V}) w.hbm_read(operand, visited_keys);
  w.hbm_write(Operand::dQ, queries);
  w.sram_write(load, Formula(2) * queries + Formula(2) * statistic + Formula(2) * visited_keys);
  w.sram_read(store, queries);
  write_visited_score_gradient(w, v, 1);
  write_visited_query_gradient(w, v);
  w.recomputed(Formula(4) * v.entries * w.depth);
  w.kernel("key_value_gradients", w.key_tiles);
  w.kernel("query_gradient", w.query_tiles);
  w.steps(Formula(6) * w.query_tiles + Formula(9) * v.pairs);
}

}  // namespace

Prediction predict_flash2_backward(const Problem& problem, const Method& method, Explain explain) {
  const Problem walked = walked_problem(problem, method);
  FigureWriter w(walked, method, explain);
  if (packs_heads(method)) {
    w.heads = w.symbol("B·Hkv", walks_of(problem, method));
    w.seq = w.symbol("G·N", walked.seq);
  }
  const VisitedSymbols v(w.sums);
  const Formula reached = Formula("keys reached", w.sums.keys_reached) * w.depth * w.stored;
  const Formula queries = w.seq * w.depth * w.stored;
  const Formula keys = w.kv_seq * w.depth * w.stored;
  const Formula visited_rows = v.rows * w.depth * w.stored;
  const Formula visited_statistic = v.rows * w.summed;

  w.kernel("deltas", w.query_tiles);
  for (const Operand operand : {Operand::O, Operand::dO}) w.hbm_read(operand, queries);
  w.hbm_write(Operand::D, w.seq * w.summed);
  w.sram_read(row_dot, Formula(2) * queries);
  w.sram_write(row_dot, w.seq * w.summed);
  w.softmax(Formula(2) * w.seq * w.depth);

  for (const Operand operand : {Operand::K, Operand::V}) w.hbm_read(operand, reached);
  for (const Operand operand : {Operand::Q, Operand::dO}) w.hbm_read(operand, visited_rows);
  for (const Operand operand : {Operand::L, Operand::D}) w.hbm_read(operand, visited_statistic);
  w.hbm_write(Operand::dK, keys);
  w.hbm_write(Operand::dV, keys);
  w.sram_write(load, Formula(2) * queries + Formula(2) * reached + Formula(2) * visited_rows +
                         Formula(2) * visited_statistic);
  w.sram_read(store, w.seq * w.summed + Formula(2) * keys);
  write_visited_score_gradient(w, v, 1);
  write_visited_key_value_gradients(w, v);
  w.recomputed(Formula(2) * v.entries * w.depth);
  w.steps(Formula(4) * w.query_tiles + Formula(2) * Formula("tiles reached", w.sums.tiles_reached) +
          Formula(3) * w.key_tiles + Formula(12) * v.pairs);

  const bool apart = problem.storage != problem.accumulation();
  std::vector<Operand> made{Operand::D};
  if (!method.deterministic && apart) made.push_back(Operand::dQ_sum);
  made.insert(made.end(), {Operand::dQ, Operand::dK, Operand::dV});
  for (const Operand operand : made) {
    w.intermediate(operand);
    w.allocated(operand);
  }
  if (method.deterministic) {
    write_apart_query_gradient(w, v);
  } else {
    write_summed_query_gradient(w, v, apart, method.sums_in_l2);
  }
  return w.finish();
}

}  // namespace flashsim
