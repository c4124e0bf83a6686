// What standard and eager have in common backward: four tiled matrix products over the full N × Nkv matrix,
// causal or not, and the softmax's gradient over whole rows.
#pragma once

#include "core/account/closed_form/whole_matrix.hpp"

namespace flashsim {

/// dV, dP, dS, dQ and dK: everything but the passes between. `weights` are what O was the product of.
inline void write_matrix_gradients(FigureWriter& w, Operand weights) {
  using enum Operation;
  const Formula entries = w.seq * w.kv_seq;
  const Formula queries = w.seq * w.depth * w.stored;
  const Formula keys = w.kv_seq * w.depth * w.stored;
  const Formula query_sums = w.seq * w.key_tiles * w.depth * w.summed;
  const Formula key_sums = w.query_tiles * w.kv_seq * w.depth * w.summed;
  const Formula tiles = w.query_tiles * w.key_tiles;

  w.hbm_read(weights, score_matrix(w));
  w.hbm_read(Operand::P, score_matrix(w));
  w.hbm_read(Operand::dO, Formula(2) * queries);
  w.hbm_read(Operand::V, keys);
  w.hbm_read(Operand::K, keys);
  w.hbm_read(Operand::Q, queries);
  w.hbm_write(Operand::dP, score_matrix(w));
  w.hbm_read(Operand::dP, score_matrix(w));
  w.hbm_write(Operand::dS, score_matrix(w));
  w.hbm_read(Operand::dS, Formula(2) * score_matrix(w));
  w.hbm_write(Operand::dQ, queries);
  w.hbm_write(Operand::dK, keys);
  w.hbm_write(Operand::dV, keys);
  w.sm_read(Operand::dO, Formula(2) * queries_again(w) * w.stored);
  w.sm_read(Operand::V, keys_again(w) * w.stored);
  w.sm_read(Operand::K, keys_again(w) * w.stored);
  w.sm_read(Operand::Q, queries_again(w) * w.stored);

  // Loads: P, dO and V, P and dP, dS and K, dS and Q. Stores: dP, dS, dQ, dK, dV.
  w.sram_write(load, Formula(5) * score_matrix(w) +
                         (Formula(3) * queries_again(w) + Formula(2) * keys_again(w)) * w.stored);
  w.sram_read(store, Formula(2) * score_matrix(w) + queries + Formula(2) * keys);
  for (const Operation product : {value_gradient, key_gradient}) {
    w.sram_read(product, score_matrix(w) + queries_again(w) * w.stored + key_sums);
    w.sram_write(product, key_sums);
  }
  w.sram_read(probability_gradient, (queries_again(w) + keys_again(w)) * w.stored);
  w.sram_write(probability_gradient, score_matrix(w));
  w.sram_read(row_dot, Formula(2) * score_matrix(w));
  w.sram_write(row_dot, w.seq * w.summed);
  w.sram_read(score_gradient, Formula(2) * score_matrix(w) + w.seq * w.key_tiles * w.summed);
  w.sram_write(score_gradient, score_matrix(w));
  w.sram_read(query_gradient, score_matrix(w) + keys_again(w) * w.stored + query_sums);
  w.sram_write(query_gradient, query_sums);

  w.products(Formula(8) * entries * w.depth);
  w.softmax(Formula(4) * entries);
  // Three steps a tile for dV, dQ and dK each, four for dP, four for dS; two for what a kernel sums and
  // stores, and one for the sum of a row block.
  w.steps(Formula(17) * tiles + Formula(4) * w.key_tiles + Formula(3) * w.query_tiles);
}

}  // namespace flashsim
