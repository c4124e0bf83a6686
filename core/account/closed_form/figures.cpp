#include "core/account/closed_form/figures.hpp"

#include <utility>

namespace flashsim {

FigureWriter::FigureWriter(const Problem& problem, const Method& method, Explain explain)
    : heads(0),
      seq(0),
      kv_seq(0),
      depth(0),
      stored(0),
      summed(0),
      query_tiles(0),
      key_tiles(0),
      sums(visited_sums(problem, method.tiling)),
      problem_(problem),
      explain_(explain) {
  heads = symbol("B·H", walks_of(problem, method));
  seq = symbol("N", problem.seq);
  kv_seq = symbol("Nkv", problem.kv_seq);
  depth = symbol("d", problem.head_dim);
  stored = symbol("e", size_of(problem.storage));
  summed = symbol("a", size_of(problem.accumulation()));
  query_tiles = symbol("Tr", sums.query_tiles);
  key_tiles = symbol("Tc", sums.key_tiles);
}

Formula FigureWriter::symbol(const char* name, Count value) const {
  return explain_ == Explain::yes ? Formula(name, value) : Formula::unexplained(value);
}

Count FigureWriter::enter(std::initializer_list<std::string_view> parts, const Formula& one_head) {
  const Formula all = heads * one_head;
  if (explain_ == Explain::yes) {
    std::string figure;
    for (const std::string_view part : parts) figure += part;
    prediction_.explanations.push_back({std::move(figure), all.symbols(), all.numbers(), all.value()});
  }
  return all.value();
}

void FigureWriter::hbm_read(Operand operand, const Formula& bytes) {
  prediction_.tally.hbm_of(operand).read += Bytes(enter({"hbm.", name_of(operand), ".read_bytes"}, bytes));
}

void FigureWriter::hbm_write(Operand operand, const Formula& bytes) {
  prediction_.tally.hbm_of(operand).written +=
      Bytes(enter({"hbm.", name_of(operand), ".write_bytes"}, bytes));
}

void FigureWriter::initial_write(Operand operand, const Formula& bytes) {
  prediction_.tally.initial_of(operand).written +=
      Bytes(enter({"hbm.", name_of(operand), " initial.write_bytes"}, bytes));
}

void FigureWriter::sm_read(Operand operand, const Formula& bytes) {
  sm_read_given_[static_cast<std::size_t>(operand)] = true;
  prediction_.tally.sm_of(operand).read += Bytes(enter({"sm.", name_of(operand), ".read_bytes"}, bytes));
}

void FigureWriter::sram_read(Operation operation, const Formula& bytes) {
  prediction_.tally.sram_of(operation).read +=
      Bytes(enter({"sram.", name_of(operation), ".read_bytes"}, bytes));
}

void FigureWriter::sram_write(Operation operation, const Formula& bytes) {
  prediction_.tally.sram_of(operation).written +=
      Bytes(enter({"sram.", name_of(operation), ".write_bytes"}, bytes));
}

void FigureWriter::products(const Formula& flops) {
  prediction_.tally.work.products += Flops(enter({"flops.executed"}, flops));
}
void FigureWriter::scale(const Formula& flops) {
  prediction_.tally.work.scale += Flops(enter({"flops.scale"}, flops));
}
void FigureWriter::mask(const Formula& flops) {
  prediction_.tally.work.mask += Flops(enter({"flops.mask"}, flops));
}
void FigureWriter::softmax(const Formula& flops) {
  prediction_.tally.work.softmax += Flops(enter({"flops.softmax"}, flops));
}
void FigureWriter::rescale(const Formula& flops) {
  prediction_.tally.work.rescale += Flops(enter({"flops.rescale"}, flops));
}
void FigureWriter::normalise(const Formula& flops) {
  prediction_.tally.work.normalise += Flops(enter({"flops.normalise"}, flops));
}
void FigureWriter::exponentials(const Formula& count) {
  prediction_.tally.work.exponentials += enter({"flops.exponentials"}, count);
}

void FigureWriter::kernel(std::string_view name, const Formula& blocks) {
  prediction_.tally.kernels.push_back({std::string(name), enter({"launch.", name, ".blocks"}, blocks)});
}

void FigureWriter::steps(const Formula& steps) { prediction_.tally.steps += steps.value(); }

void FigureWriter::recomputed(const Formula& flops) {
  prediction_.recomputed += Flops(enter({"flops.recomputed"}, flops));
}

void FigureWriter::launches(std::string_view name, const Formula& launches, const Formula& blocks) {
  kernel(name, blocks);
  prediction_.tally.kernels.back().launches = launches.value();
  if (launches.value() == Count(1)) return;
  if (explain_ == Explain::no) return;
  prediction_.explanations.push_back({"launch." + std::string(name) + ".launches", launches.symbols(),
                                      launches.numbers(), launches.value()});
}

void FigureWriter::intermediate(Operand operand, std::string_view note) {
  intermediate(operand, whole_size(operand, problem_), note);
}

void FigureWriter::intermediate(Operand operand, Bytes size, std::string_view note) {
  prediction_.intermediate.push_back({operand, std::string(note), size});
}

void FigureWriter::allocated(Operand operand, std::string_view note) {
  allocated(operand, whole_size(operand, problem_), note);
}

void FigureWriter::allocated(Operand operand, Bytes size, std::string_view note) {
  prediction_.allocated.push_back({operand, std::string(note), size});
}

Prediction FigureWriter::finish() {
  Tally& tally = prediction_.tally;
  for (const Operand operand : kOperands) {
    const Flow& hbm = tally.hbm_of(operand);
    Flow& sm = tally.sm_of(operand);
    if (!sm_read_given_[static_cast<std::size_t>(operand)]) sm.read = hbm.read;
    sm.written = hbm.written + tally.initial_of(operand).written;
  }
  tally.peak_allocated = total_size(prediction_.allocated);
  prediction_.tile_pairs = {sums.visited.pairs, sums.query_tiles, sums.key_tiles};
  return std::move(prediction_);
}

}  // namespace flashsim
