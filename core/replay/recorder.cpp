#include "core/replay/recorder.hpp"

namespace flashsim {
namespace {

ChipValue value_of(Operand operand) {
  switch (operand) {
    case Operand::Q: return ChipValue::Q;
    case Operand::K: return ChipValue::K;
    case Operand::V: return ChipValue::V;
    case Operand::S: return ChipValue::S;
    case Operand::P: return ChipValue::P;
    case Operand::O: return ChipValue::O;
    case Operand::L: return ChipValue::L;
    case Operand::m: return ChipValue::m;
    case Operand::l: return ChipValue::l;
    default: break;  // Backward steps aren't recorded.
  }
  return ChipValue::Q;
}

/// What a step leaves that is worth looking at.
std::vector<ChipValue> values_after(const Step& step) {
  using enum ChipValue;
  switch (step.operation) {
    case Operation::load:
    case Operation::store: return {value_of(step.operand)};
    case Operation::reset: return {m, l, O};
    case Operation::scores:
    case Operation::scale:
    case Operation::mask: return {S};
    case Operation::softmax: return {P};
    case Operation::online_softmax: return {m_before, m, P, row_sum};
    case Operation::rescale: return {r, l_before, row_sum, l, O};
    case Operation::accumulate: return {O};
    case Operation::finish: return {O, l, L};
    case Operation::initialise:
    case Operation::discard:
    default: return {};  // Backward steps aren't recorded.
  }
}

/// K and V have key rows; everything else has the rows of the query tile.
bool has_query_rows(ChipValue value) { return value != ChipValue::K && value != ChipValue::V; }

NumberMatrix one_row(const NumberMatrix& matrix, std::int64_t row) {
  const auto first = matrix.numbers.begin() + row * matrix.columns;
  return {.rows = 1, .columns = matrix.columns, .numbers = {first, first + matrix.columns}};
}

}  // namespace

const NumberMatrix* Frame::find(ChipValue value) const {
  for (const auto& [name, matrix] : values) {
    if (name == value) return &matrix;
  }
  return nullptr;
}

Recorder::Recorder(const Problem& problem, std::optional<std::int64_t> row, std::int64_t most_numbers)
    : problem_(problem), row_(row), most_numbers_(most_numbers) {}

void Recorder::begin_head(std::int64_t batch, std::int64_t head) {
  batch_ = batch;
  head_ = head;
}

void Recorder::executed(const Step& step, const ChipValues& chip) {
  if (row_ && (*row_ < step.rows.begin || *row_ >= step.rows.end)) return;
  if (overflowed()) return;
  Frame frame{.batch = batch_, .head = head_, .step = step};
  const bool moves_out = step.operation == Operation::store || step.operation == Operation::initialise;
  if (moves_out) frame.hbm_written = tile_bytes(step, problem_);
  if (step.operation == Operation::load && !step.again) frame.hbm_read = tile_bytes(step, problem_);
  for (const ChipValue value : values_after(step)) {
    NumberMatrix matrix = chip.read(value);
    if (row_ && has_query_rows(value)) matrix = one_row(matrix, *row_ - step.rows.begin);
    kept_ += static_cast<std::int64_t>(matrix.numbers.size());
    frame.values.emplace_back(value, std::move(matrix));
  }
  if (row_) frame.step.rows = {*row_, *row_ + 1};
  frames_.push_back(std::move(frame));
}

}  // namespace flashsim
