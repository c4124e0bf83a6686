// Split-KV forward. The query heads of a group are packed into G·N rows, so K and V cross once for every
// packed query tile that sees them. A part is ⌈Tc/S⌉ key tiles; it loads its queries where it sees a key, and
// a part is to this what a key tile is to the rest: the pairs of query tiles and parts are the visited pairs
// of a grid whose key tiles are ⌈Tc/S⌉·Bc keys. The parts are S outputs and S logsumexps in the accumulation
// type, each written once and read once: 2·S·a·B·H·N·(d + 1) bytes.
#include <fmt/format.h>

#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/flash_tiles.hpp"

namespace flashsim {
namespace {

/// The sums over pairs of a query tile and a part that holds a key which it sees.
PairSums pairs_of_parts(const Problem& packed, const Method& method) {
  const std::int64_t key_tiles = (packed.kv_seq - 1) / method.tiling.key_rows + 1;
  const std::int64_t tiles_a_part = (key_tiles - 1) / method.splits + 1;
  const std::int64_t keys_a_part = tiles_a_part * method.tiling.key_rows;
  return visited_sums(packed, {method.tiling.query_rows, keys_a_part}).visited;
}

}  // namespace

Prediction predict_split_kv(const Problem& problem, const Method& method, Explain explain) {
  const Problem packed = packed_heads(problem);
  FigureWriter w(packed, method, explain);
  w.heads = w.symbol("B·Hkv", walks_of(problem, method));
  w.seq = w.symbol("G·N", packed.seq);
  const VisitedSymbols v(w.sums);
  const bool parts = method.splits > 1;
  const Formula splits = w.symbol("S", method.splits);
  using enum Operation;

  const PairSums by_part = pairs_of_parts(packed, method);
  const Formula queries_loaded = parts ? w.symbol("Σrows of parts", by_part.rows) : w.seq;
  const Formula query_loads = parts ? w.symbol("Σ1 of parts", by_part.pairs) : w.query_tiles;
  const Formula query_tensor = w.seq * w.depth * w.stored;
  const Formula visited_keys = v.keys * w.depth * w.stored;
  const Formula statistic = w.seq * w.summed;
  const Formula accumulator = w.seq * w.depth * w.summed;
  w.hbm_read(Operand::Q, queries_loaded * w.depth * w.stored);
  w.hbm_read(Operand::K, visited_keys);
  w.hbm_read(Operand::V, visited_keys);
  w.hbm_write(Operand::O, query_tensor);
  w.hbm_write(Operand::L, statistic);
  w.sram_write(load, queries_loaded * w.depth * w.stored + Formula(2) * visited_keys);
  write_visited_work(w, v);
  w.sram_read(finish, accumulator);
  w.sram_write(finish, query_tensor);
  w.sram_read(store, query_tensor + statistic);
  w.normalise(w.seq * (w.depth + Formula(1)));
  w.intermediate(Operand::O);
  w.intermediate(Operand::L);
  w.allocated(Operand::O);
  w.allocated(Operand::L);
  w.kernel("attention", w.query_tiles * splits);
  if (!parts) {
    w.steps(Formula(5) * w.query_tiles + Formula(8) * v.pairs);
    return w.finish();
  }

  for (const auto& [part, bytes] :
       {std::pair{Operand::O_part, &accumulator}, std::pair{Operand::L_part, &statistic}}) {
    w.hbm_write(part, splits * *bytes);
    w.hbm_read(part, splits * *bytes);
    const Bytes size = whole_size(part, packed) * Count(method.splits);
    const std::string note = fmt::format("{} parts", method.splits);
    w.intermediate(part, size, note);
    w.allocated(part, size, note);
  }
  w.sram_write(load, splits * (accumulator + statistic));
  w.sram_read(store, splits * (accumulator + statistic));
  w.sram_read(finish, splits * accumulator);
  w.sram_write(finish, splits * accumulator);
  w.normalise(splits * w.seq * (w.depth + Formula(1)));
  // A part at a time is weighed and added.
  w.sram_read(combine, splits * Formula(2) * accumulator);
  w.sram_write(combine, splits * accumulator);
  w.rescale(splits * w.seq * (Formula(2) * w.depth + Formula(2)));
  w.exponentials(splits * w.seq);
  w.kernel("combine", w.query_tiles);
  // Reset, finish and two stores a part; the queries where a key is seen; then reset, finish and two stores,
  // and two loads and a step for every part.
  w.steps(Formula(4) * w.query_tiles * splits + query_loads + Formula(8) * v.pairs +
          w.query_tiles * (Formula(4) + Formula(3) * splits));
  return w.finish();
}

}  // namespace flashsim
