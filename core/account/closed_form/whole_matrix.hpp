// What standard and eager have in common: both compute the full N × Nkv matrix, causal or not, in two
// tiled matrix products and a softmax over whole rows.
#pragma once

#include "core/account/closed_form/figures.hpp"

namespace flashsim {

/// Bytes of one head's score matrix.
inline Formula score_matrix(const FigureWriter& w) { return w.seq * w.kv_seq * w.stored; }

/// Elements that a tiled product brings into the SMs: Q_i once for every key tile, K_j or V_j once for
/// every query tile.
inline Formula queries_again(const FigureWriter& w) { return w.seq * w.key_tiles * w.depth; }
inline Formula keys_again(const FigureWriter& w) { return w.query_tiles * w.kv_seq * w.depth; }

/// Entries of the tiles that hold a masked pair.
inline Formula masked_entries(const FigureWriter& w) {
  return Formula("Σmasked rows·keys", w.sums.masked_all.entries);
}

/// Q Kᵀ, softmax and P V: everything but the passes between.
inline void write_whole_matrix(FigureWriter& w) {
  using enum Operation;
  const Formula entries = w.seq * w.kv_seq;
  const Formula accumulator = w.seq * w.key_tiles * w.depth * w.summed;

  w.hbm_read(Operand::Q, w.seq * w.depth * w.stored);
  w.hbm_read(Operand::K, w.kv_seq * w.depth * w.stored);
  w.hbm_write(Operand::S, score_matrix(w));
  w.hbm_read(Operand::S, score_matrix(w));
  w.hbm_write(Operand::P, score_matrix(w));
  w.hbm_read(Operand::P, score_matrix(w));
  w.hbm_read(Operand::V, w.kv_seq * w.depth * w.stored);
  w.hbm_write(Operand::O, w.seq * w.depth * w.stored);
  w.sm_read(Operand::Q, queries_again(w) * w.stored);
  w.sm_read(Operand::K, keys_again(w) * w.stored);
  w.sm_read(Operand::V, keys_again(w) * w.stored);

  // Loads: Q and K, S, P and V. Stores: S, P and O.
  w.sram_write(load,
               (queries_again(w) + Formula(2) * keys_again(w)) * w.stored + Formula(2) * score_matrix(w));
  w.sram_read(scores, (queries_again(w) + keys_again(w)) * w.stored);
  w.sram_write(scores, score_matrix(w));
  w.sram_read(softmax, score_matrix(w));
  w.sram_write(softmax, score_matrix(w));
  w.sram_read(accumulate, score_matrix(w) + keys_again(w) * w.stored + accumulator);
  w.sram_write(accumulate, accumulator);
  w.sram_read(store, Formula(2) * score_matrix(w) + w.seq * w.depth * w.stored);

  w.products(Formula(4) * entries * w.depth);
  w.softmax(Formula(4) * entries);
  w.exponentials(entries);
}

}  // namespace flashsim
