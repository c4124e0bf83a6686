// Memory-efficient forward: the whole score matrix crosses four times, chunk by chunk, as in standard
// attention. Q is read for every key chunk, K and V for every query chunk, and every key chunk leaves a part
// of O. With square chunks of C that is 4N² + 3N²d/C + Nd elements stored, and 2N²(d + 2)/C summed.
#include <algorithm>

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/figures.hpp"

namespace flashsim {
namespace {

std::int64_t tiles_in(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }

/// Tiles of `tile` rows in chunks of `chunk` rows, the last of which may be shorter.
Count tiles_of_chunks(std::int64_t length, std::int64_t chunk, std::int64_t tile) {
  const std::int64_t whole = (length - 1) / chunk;
  return Count(whole) * tiles_in(std::min(chunk, length), tile) + tiles_in(length - whole * chunk, tile);
}

}  // namespace

Prediction predict_memory_efficient(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  using enum Operation;

  const Formula row_tiles("Rt",
                          tiles_of_chunks(problem.seq, method.tiling.query_rows, kProductTiles.query_rows));
  const Formula key_tiles("Kt",
                          tiles_of_chunks(problem.kv_seq, method.tiling.key_rows, kProductTiles.key_rows));
  const Formula masked("Σmasked rows·keys", w.sums.masked_all.entries);
  const Formula matrix = w.seq * w.kv_seq * w.stored;
  const Formula query_tensor = w.seq * w.depth * w.stored;
  const Formula key_tensor = w.kv_seq * w.depth * w.stored;
  const Formula parts = w.key_tiles * w.seq * w.depth * w.summed;
  const Formula statistics = w.key_tiles * w.seq * w.summed;

  w.hbm_read(Operand::Q, w.key_tiles * query_tensor);
  w.hbm_read(Operand::K, w.query_tiles * key_tensor);
  w.hbm_read(Operand::V, w.query_tiles * key_tensor);
  for (const Operand scores_or_weights : {Operand::S, Operand::P}) {
    w.hbm_write(scores_or_weights, matrix);
    w.hbm_read(scores_or_weights, matrix);
  }
  w.hbm_write(Operand::O_part, parts);
  w.hbm_read(Operand::O_part, parts);
  for (const Operand statistic : {Operand::m_part, Operand::l_part}) {
    w.hbm_write(statistic, statistics);
    w.hbm_read(statistic, statistics);
  }
  w.hbm_write(Operand::O, query_tensor);
  w.sm_read(Operand::Q, key_tiles * query_tensor);
  w.sm_read(Operand::K, row_tiles * key_tensor);
  w.sm_read(Operand::V, row_tiles * key_tensor);

  const Formula accumulator = key_tiles * w.seq * w.depth * w.summed;
  w.sram_write(load, key_tiles * query_tensor + Formula(2) * row_tiles * key_tensor + Formula(2) * matrix +
                         parts + Formula(2) * statistics);
  w.sram_read(scores, key_tiles * query_tensor + row_tiles * key_tensor);
  w.sram_write(scores, matrix);
  w.sram_read(mask, masked * w.stored);
  w.sram_write(mask, masked * w.stored);
  w.sram_read(row_maximum, matrix);
  w.sram_read(denominator, matrix);
  w.sram_write(denominator, matrix);
  w.sram_read(accumulate, matrix + row_tiles * key_tensor + accumulator);
  w.sram_write(accumulate, accumulator);
  w.sram_read(combine, Formula(2) * parts);
  w.sram_write(combine, parts);
  w.sram_read(finish, w.seq * w.depth * w.summed);
  w.sram_write(finish, query_tensor);
  w.sram_read(store, Formula(2) * matrix + parts + Formula(2) * statistics + query_tensor);

  w.products(Formula(4) * w.seq * w.kv_seq * w.depth);
  w.mask(masked);
  w.softmax(Formula(3) * w.seq * w.kv_seq);
  w.rescale(w.key_tiles * w.seq * (Formula(2) * w.depth + Formula(2)));
  w.normalise(w.seq * w.depth);
  w.exponentials(w.seq * w.kv_seq + w.key_tiles * w.seq);

  const Count rows = std::min(problem.seq, method.tiling.query_rows);
  const Count keys = std::min(problem.kv_seq, method.tiling.key_rows);
  const auto kept = [&](Operand operand, Count elements, std::string_view note) {
    const Bytes size(w.heads.value() * elements * element_size(operand, problem));
    w.intermediate(operand, size, note);
    w.allocated(operand, size, note);
  };
  w.allocated(Operand::O);
  kept(Operand::S, rows * keys, "one chunk");
  kept(Operand::P, rows * keys, "one chunk");
  kept(Operand::O_part, rows * w.key_tiles.value() * problem.head_dim, "of one query chunk");
  kept(Operand::m_part, rows * w.key_tiles.value(), "");
  kept(Operand::l_part, rows * w.key_tiles.value(), "");
  const Formula pairs = w.query_tiles * w.key_tiles;
  w.launches("scores", pairs, row_tiles * key_tiles);
  w.launches("exponentials", pairs, row_tiles * w.key_tiles);
  w.launches("output", pairs, row_tiles * w.key_tiles);
  w.launches("combine", w.query_tiles, row_tiles);
  // Four steps for a tile of S, three to mask and store it, three for its part of O; of a row of tiles in a
  // chunk seven, and four to combine it; three for a row of tiles.
  w.steps(Formula(10) * row_tiles * key_tiles + Formula(11) * row_tiles * w.key_tiles +
          Formula(3) * row_tiles);
  return w.finish();
}

}  // namespace flashsim
