#include "core/account/closed_form/figures.hpp"

#include <utility>

#include <fmt/format.h>

namespace flashsim {

FigureWriter::FigureWriter(const Problem& problem, const Method& method)
    : heads("B·H", walks_of(problem, method)),
      seq("N", problem.seq),
      kv_seq("Nkv", problem.kv_seq),
      depth("d", problem.head_dim),
      stored("e", size_of(problem.storage)),
      summed("a", size_of(problem.accumulation())),
      query_tiles("Tr", 0),
      key_tiles("Tc", 0),
      sums(visited_sums(problem, method.tiling)),
      problem_(problem) {
  query_tiles = Formula("Tr", sums.query_tiles);
  key_tiles = Formula("Tc", sums.key_tiles);
}

Count FigureWriter::enter(std::string figure, const Formula& one_head) {
  const Formula all = heads * one_head;
  prediction_.explanations.push_back({std::move(figure), all.symbols(), all.numbers(), all.value()});
  return all.value();
}

void FigureWriter::hbm_read(Operand operand, const Formula& bytes) {
  prediction_.tally.hbm_of(operand).read +=
      Bytes(enter(fmt::format("hbm.{}.read_bytes", name_of(operand)), bytes));
}

void FigureWriter::hbm_write(Operand operand, const Formula& bytes) {
  prediction_.tally.hbm_of(operand).written +=
      Bytes(enter(fmt::format("hbm.{}.write_bytes", name_of(operand)), bytes));
}

void FigureWriter::initial_write(Operand operand, const Formula& bytes) {
  prediction_.tally.initial_of(operand).written +=
      Bytes(enter(fmt::format("hbm.{} initial.write_bytes", name_of(operand)), bytes));
}

void FigureWriter::sm_read(Operand operand, const Formula& bytes) {
  sm_read_given_[static_cast<std::size_t>(operand)] = true;
  prediction_.tally.sm_of(operand).read +=
      Bytes(enter(fmt::format("sm.{}.read_bytes", name_of(operand)), bytes));
}

void FigureWriter::sram_read(Operation operation, const Formula& bytes) {
  prediction_.tally.sram_of(operation).read +=
      Bytes(enter(fmt::format("sram.{}.read_bytes", name_of(operation)), bytes));
}

void FigureWriter::sram_write(Operation operation, const Formula& bytes) {
  prediction_.tally.sram_of(operation).written +=
      Bytes(enter(fmt::format("sram.{}.write_bytes", name_of(operation)), bytes));
}

void FigureWriter::products(const Formula& flops) {
  prediction_.tally.work.products += Flops(enter("flops.executed", flops));
}
void FigureWriter::scale(const Formula& flops) {
  prediction_.tally.work.scale += Flops(enter("flops.scale", flops));
}
void FigureWriter::mask(const Formula& flops) {
  prediction_.tally.work.mask += Flops(enter("flops.mask", flops));
}
void FigureWriter::softmax(const Formula& flops) {
  prediction_.tally.work.softmax += Flops(enter("flops.softmax", flops));
}
void FigureWriter::rescale(const Formula& flops) {
  prediction_.tally.work.rescale += Flops(enter("flops.rescale", flops));
}
void FigureWriter::normalise(const Formula& flops) {
  prediction_.tally.work.normalise += Flops(enter("flops.normalise", flops));
}
void FigureWriter::exponentials(const Formula& count) {
  prediction_.tally.work.exponentials += enter("flops.exponentials", count);
}

void FigureWriter::kernel(std::string_view name, const Formula& blocks) {
  prediction_.tally.kernels.push_back(
      {std::string(name), enter(fmt::format("launch.{}.blocks", name), blocks)});
}

void FigureWriter::steps(const Formula& steps) { prediction_.tally.steps = steps.value(); }

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
