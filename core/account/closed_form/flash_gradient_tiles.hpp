// What the flash kernels have in common backward: the work on the chip for every visited tile pair.
#pragma once

#include "core/account/closed_form/flash_tiles.hpp"

namespace flashsim {

/// From scores to dS, `statistics` a row (L, or m and l) making P of S.
inline void write_visited_score_gradient(FigureWriter& w, const VisitedSymbols& v, int statistics) {
  using enum Operation;
  w.sram_read(scores, (v.rows + v.keys) * w.depth * w.stored);
  w.sram_write(scores, v.entries * w.stored);
  w.sram_read(mask, v.masked_entries * w.stored);
  w.sram_write(mask, v.masked_entries * w.stored);
  w.sram_read(probabilities, v.entries * w.stored + Formula(statistics) * v.rows * w.summed);
  w.sram_write(probabilities, v.entries * w.stored);
  w.sram_read(probability_gradient, (v.rows + v.keys) * w.depth * w.stored);
  w.sram_write(probability_gradient, v.entries * w.stored);
  w.sram_read(score_gradient, Formula(2) * v.entries * w.stored + v.rows * w.summed);
  w.sram_write(score_gradient, v.entries * w.stored);
  w.products(Formula(4) * v.entries * w.depth);
  w.mask(v.masked_entries);
  w.softmax(Formula(statistics + 2) * v.entries);
  w.exponentials(v.entries);
}

inline void write_visited_query_gradient(FigureWriter& w, const VisitedSymbols& v) {
  const Formula sums = v.rows * w.depth * w.summed;
  w.sram_read(Operation::query_gradient, v.entries * w.stored + v.keys * w.depth * w.stored + sums);
  w.sram_write(Operation::query_gradient, sums);
  w.products(Formula(2) * v.entries * w.depth);
}

inline void write_visited_key_value_gradients(FigureWriter& w, const VisitedSymbols& v) {
  const Formula sums = v.keys * w.depth * w.summed;
  for (const Operation product : {Operation::value_gradient, Operation::key_gradient}) {
    w.sram_read(product, v.entries * w.stored + v.rows * w.depth * w.stored + sums);
    w.sram_write(product, sums);
  }
  w.products(Formula(4) * v.entries * w.depth);
}

}  // namespace flashsim
