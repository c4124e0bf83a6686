// Standard forward: 4N² + 4Nd elements. S and P are each written and read once, and P overwrites S.
#include "core/account/closed_form/closed_form.hpp"
#include "core/account/closed_form/whole_matrix.hpp"

namespace flashsim {

Prediction predict_standard(const Problem& problem, const Method& method, Explain explain) {
  FigureWriter w(problem, method, explain);
  using enum Operation;
  write_whole_matrix(w);
  w.sram_read(mask, masked_entries(w) * w.stored);
  w.sram_write(mask, masked_entries(w) * w.stored);
  w.mask(masked_entries(w));

  w.intermediate(Operand::S, "P overwrites it");
  w.allocated(Operand::S, "P overwrites it");
  w.allocated(Operand::O);
  w.kernel("scores", w.query_tiles * w.key_tiles);
  w.kernel("softmax", w.query_tiles);
  w.kernel("output", w.query_tiles);
  // Four steps for a tile of S, three to mask and store it, three for its part of O; three for a row block.
  w.steps(Formula(10) * w.query_tiles * w.key_tiles + Formula(3) * w.query_tiles);
  return w.finish();
}

}  // namespace flashsim
