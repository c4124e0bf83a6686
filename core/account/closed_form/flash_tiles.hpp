// What the two flash kernels have in common: the work on the chip for every visited tile pair.
#pragma once

#include "core/account/closed_form/figures.hpp"

namespace flashsim {

/// The sums over visited pairs, as symbols.
struct VisitedSymbols {
  explicit VisitedSymbols(const Visited& sums)
      : pairs("Σ1", sums.visited.pairs),
        rows("Σrows", sums.visited.rows),
        keys("Σkeys", sums.visited.keys),
        entries("Σrows·keys", sums.visited.entries),
        masked_entries("Σmasked rows·keys", sums.masked.entries) {}
  Formula pairs;
  Formula rows;
  Formula keys;
  Formula entries;
  Formula masked_entries;
};

/// Scores, mask, online softmax, rescale and accumulate, for every visited pair.
inline void write_visited_work(FigureWriter& w, const VisitedSymbols& v) {
  using enum Operation;
  w.sram_read(scores, (v.rows + v.keys) * w.depth * w.stored);
  w.sram_write(scores, v.entries * w.stored);
  w.sram_read(mask, v.masked_entries * w.stored);
  w.sram_write(mask, v.masked_entries * w.stored);
  w.sram_read(online_softmax, v.entries * w.stored);
  w.sram_write(online_softmax, v.entries * w.stored);
  w.sram_read(rescale, v.rows * w.depth * w.summed);
  w.sram_write(rescale, v.rows * w.depth * w.summed);
  w.sram_read(accumulate, v.entries * w.stored + v.keys * w.depth * w.stored + v.rows * w.depth * w.summed);
  w.sram_write(accumulate, v.rows * w.depth * w.summed);
  w.products(Formula(4) * v.entries * w.depth);
  w.mask(v.masked_entries);
  w.softmax(Formula(3) * v.entries);
  w.rescale(v.rows * (w.depth + Formula(2)));
  w.exponentials(v.entries + v.rows);
}

/// All that FlashAttention-2 does with the tile pairs of `w.sums.visited`, whichever they are.
void write_flash2(FigureWriter& w);

}  // namespace flashsim
