#include "app/views/replay_view.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/render/text.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kMostNumbers = 12;

std::string vector_text(const NumberMatrix& matrix, std::int64_t row) {
  std::vector<std::string> numbers;
  for (std::int64_t c = 0; c < std::min(matrix.columns, kMostNumbers); ++c)
    numbers.push_back(value_text(matrix.at(row, c)));
  const std::string more = matrix.columns > kMostNumbers ? fmt::format(", … ({})", matrix.columns) : "";
  return fmt::format("[{}{}]", fmt::join(numbers, ", "), more);
}

/// All rows of a small matrix, one behind the other.
std::string matrix_text(const NumberMatrix& matrix) {
  std::vector<std::string> rows;
  const std::int64_t shown = std::min<std::int64_t>(matrix.rows, 8);
  for (std::int64_t r = 0; r < shown; ++r) rows.push_back(vector_text(matrix, r));
  if (matrix.rows > shown) rows.push_back(fmt::format("… ({} rows)", matrix.rows));
  return fmt::format("{}", fmt::join(rows, " "));
}

std::string rows_text(Range rows) {
  return rows.size() == 1 ? fmt::format("row {}", rows.begin)
                          : fmt::format("rows {} to {}", rows.begin, rows.end - 1);
}
std::string keys_text(Range keys) {
  return keys.size() == 1 ? fmt::format("key {}", keys.begin)
                          : fmt::format("keys {} to {}", keys.begin, keys.end - 1);
}

/// The eight operations on a pair of tiles, as a lesson counts them; 0 for what isn't one of them.
int lesson_number(Operation operation) {
  switch (operation) {
    case Operation::load: return 1;
    case Operation::scores: return 2;
    case Operation::mask: return 3;
    case Operation::online_softmax: return 4;
    case Operation::rescale: return 5;
    case Operation::accumulate: return 6;
    case Operation::discard: return 7;
    case Operation::store: return 8;
    default: return 0;
  }
}

std::string lesson_name(Operation operation) {
  switch (operation) {
    case Operation::online_softmax: return "exponentials";
    case Operation::rescale: return "state update";
    case Operation::store:
    case Operation::initialise: return "write";
    case Operation::reset: return "reset";
    default: return std::string(name_of(operation));
  }
}

/// Writes the lines of a tiled recording, one operation after another.
class FrameLines {
 public:
  FrameLines(const ReplayReport& report, std::vector<std::string>& lines) : report_(report), lines_(lines) {}

  void write(const Frame& frame) {
    const Step& step = frame.step;
    switch (step.operation) {
      case Operation::initialise:
        if (step.operand == Operand::O)
          line(frame, "", "O = 0, l = 0, m = −∞ go to HBM: " + size_text(initial_bytes(frame)));
        break;
      case Operation::reset: line(frame, "", "o = 0, l = 0, m = −∞"); break;
      case Operation::load: load(frame); break;
      case Operation::scores:
        by_row(frame, [&](std::int64_t r) { return "s = " + vector_text(*frame.find(ChipValue::S), r); });
        break;
      case Operation::mask:
        if (step.idle) {
          line(frame, "", "every key of the tile is visible: nothing to mask");
        } else {
          by_row(frame, [&](std::int64_t r) { return "s = " + vector_text(*frame.find(ChipValue::S), r); });
        }
        break;
      case Operation::online_softmax:
        by_row(frame, [&](std::int64_t r) { return exponentials(frame, r); });
        break;
      case Operation::rescale: by_row(frame, [&](std::int64_t r) { return update(frame, r); }); break;
      case Operation::accumulate:
        by_row(frame,
               [&](std::int64_t r) { return "o ← o + p·V = " + vector_text(*frame.find(ChipValue::O), r); });
        break;
      case Operation::discard: line(frame, "", "S, P, K and V leave the chip; nothing is written"); break;
      case Operation::finish:
        by_row(frame, [&](std::int64_t r) {
          std::string output = "Y = o / l = " + vector_text(*frame.find(ChipValue::O), r);
          // flash1 keeps l and m instead of L.
          if (keeps_statistics()) return output;
          return fmt::format("{}   L = m + ln l = {}", output,
                             value_text(frame.find(ChipValue::L)->at(r, 0)));
        });
        break;
      case Operation::store: store(frame); break;
      default: break;  // Steps of other schedules, which aren't replayed this way.
    }
  }

 private:
  [[nodiscard]] bool keeps_statistics() const { return report_.tiled.algorithm == Algorithm::flash1; }

  /// O, l and m of the rows of the frame, which shows O.
  [[nodiscard]] Bytes initial_bytes(const Frame& frame) const {
    Bytes bytes = frame.hbm_written;
    for (const Operand statistic : {Operand::l, Operand::m}) {
      bytes += Bytes(Count(frame.step.rows.size()) * element_size(statistic, report_.scenario.problem));
    }
    return bytes;
  }

  void load(const Frame& frame) {
    const Step& step = frame.step;
    const bool statistic = is_accumulated(step.operand);
    const NumberMatrix& values = frame.values.front().second;
    const std::string what =
        report_.scenario.inputs.scores_given() && (step.operand == Operand::Q || step.operand == Operand::K)
            ? "(the scores are given)"
            : matrix_text(values);
    line(frame, std::string(name_of(step.operand)),
         fmt::format("{}   {} from HBM", statistic ? matrix_text(values) : what, size_text(frame.hbm_read)));
  }

  void store(const Frame& frame) {
    line(frame, std::string(name_of(frame.step.operand)),
         fmt::format("{}   {} to HBM", matrix_text(frame.values.front().second),
                     size_text(frame.hbm_written)));
  }

  std::string exponentials(const Frame& frame, std::int64_t r) const {
    const auto at = [&](ChipValue v) { return value_text(frame.find(v)->at(r, 0)); };
    const std::string p = vector_text(*frame.find(ChipValue::P), r);
    if (!report_.scenario.switches.subtract_max) {
      return fmt::format("p = exp(s) = {}   sum {}   (no maximum is kept)", p, at(ChipValue::row_sum));
    }
    return fmt::format("m′ = max(m, s): {} → {}   p = exp(s − m′) = {}   sum {}", at(ChipValue::m_before),
                       at(ChipValue::m), p, at(ChipValue::row_sum));
  }

  std::string update(const Frame& frame, std::int64_t r) const {
    const auto at = [&](ChipValue v) { return value_text(frame.find(v)->at(r, 0)); };
    const Switches& switches = report_.scenario.switches;
    const std::string r_text = !switches.rescale        ? "r = 1 (rescaling is off)"
                               : !switches.subtract_max ? "r = " + at(ChipValue::r)
                                                        : "r = exp(m − m′) = " + at(ChipValue::r);
    return fmt::format("{}   l = r·l + sum = {}·{} + {} = {}   o ← {} = {}", r_text, at(ChipValue::r),
                       at(ChipValue::l_before), at(ChipValue::row_sum), at(ChipValue::l),
                       keeps_statistics() ? "r·l·o" : "r·o", vector_text(*frame.find(ChipValue::O), r));
  }

  /// One line for each row of the frame; the first carries the operation's name.
  template <class TextOfRow>
  void by_row(const Frame& frame, TextOfRow text_of) {
    const std::int64_t rows = frame.values.front().second.rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::string which = rows > 1 ? fmt::format("row {}", frame.step.rows.begin + r) : "";
      line(frame, which, text_of(r), r > 0);
    }
  }

  void line(const Frame& frame, const std::string& which, const std::string& text, bool continued = false) {
    const int number = lesson_number(frame.step.operation);
    std::string head = continued    ? std::string(18, ' ')
                       : number > 0 ? fmt::format("    {} {}", number, lesson_name(frame.step.operation))
                                    : fmt::format("      {}", lesson_name(frame.step.operation));
    lines_.push_back(padded(head, 20, false) +
                     (which.empty() ? "" : padded(which, which.starts_with("row") ? 8 : 3, false)) + text);
  }

  const ReplayReport& report_;
  std::vector<std::string>& lines_;
};

/// A tile's number; empty for none.
std::string tile_text(std::int64_t tile) { return tile < 0 ? "" : fmt::format("{}", tile); }

std::string head_text(const Problem& p, const Frame& frame) {
  std::string text;
  if (p.batch > 1) text += fmt::format("batch {} · ", frame.batch);
  if (p.heads > 1) text += fmt::format("head {} · ", frame.head);
  return text;
}

/// The tiled way, a page for each (head, query tile) or, where key tiles are outside, key tile.
std::vector<Document> tiled_pages(const ReplayReport& report) {
  std::vector<Document> pages;
  const bool keys_outside = report.tiled.algorithm == Algorithm::flash1;
  std::vector<std::string> lines;
  std::string title;
  const auto close = [&] {
    if (lines.empty()) return;
    pages.push_back({Heading{title}, LinesBlock{std::move(lines)}});
    lines.clear();
  };
  std::int64_t pair = -1;
  for (const Frame& frame : report.tiled.frames) {
    const Step& step = frame.step;
    std::string here = head_text(report.scenario.problem, frame);
    if (keys_outside) {
      here += step.operation == Operation::initialise
                  ? "Before the first tile"
                  : fmt::format("{} tile {} · {}", here.empty() ? "Key" : "key", step.key_tile,
                                keys_text(step.keys));
    } else {
      here += fmt::format("{} tile {} · {}", here.empty() ? "Query" : "query", step.query_tile,
                          rows_text(step.rows));
    }
    if (here != title) {
      close();
      title = here;
      pair = -1;
    }
    const std::int64_t other = keys_outside ? step.query_tile : step.key_tile;
    const bool in_pair = step.query_tile >= 0 && step.key_tile >= 0;
    if (in_pair && other != pair) {
      lines.push_back(keys_outside
                          ? fmt::format("  query tile {} · {}", step.query_tile, rows_text(step.rows))
                          : fmt::format("  key tile {} · {}", step.key_tile, keys_text(step.keys)));
    } else if (!in_pair && pair >= 0) {
      lines.emplace_back("  after the last key tile");
    }
    pair = in_pair ? other : -1;
    FrameLines(report, lines).write(frame);
  }
  close();
  return pages;
}

/// The standard way: for each row its scores, masked scores, probabilities and output.
Document standard_page(const ReplayReport& report) {
  Document page;
  page.emplace_back(Heading{"The standard way: the whole row at once"});
  const Problem& p = report.scenario.problem;
  // A row's values are spread over the frames of its tiles; each kind is gathered in key order.
  struct Row {
    std::vector<double> scores, masked, probabilities;
  };
  const auto gather = [&](std::int64_t b, std::int64_t h, std::int64_t row) {
    Row gathered;
    for (const Frame& frame : report.standard.frames) {
      const Step& step = frame.step;
      if (frame.batch != b || frame.head != h || row < step.rows.begin || row >= step.rows.end) continue;
      const auto take = [&](ChipValue value, std::vector<double>& into) {
        const NumberMatrix& matrix = *frame.find(value);
        for (std::int64_t c = 0; c < matrix.columns; ++c) into.push_back(matrix.at(row - step.rows.begin, c));
      };
      if (step.operation == Operation::scores) take(ChipValue::S, gathered.scores);
      if (step.operation == Operation::mask) take(ChipValue::S, gathered.masked);
      if (step.operation == Operation::softmax) take(ChipValue::P, gathered.probabilities);
    }
    return gathered;
  };
  const auto numbers = [](const std::vector<double>& values) {
    return vector_text({.rows = 1, .columns = static_cast<std::int64_t>(values.size()), .numbers = values},
                       0);
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      TableBlock table{
          .heading = "row", .columns = {"scores", "masked", "probabilities", "Y"}, .left = {1, 2, 3, 4}};
      if (p.batch > 1 || p.heads > 1) table.heading = fmt::format("batch {} head {}", b, h);
      for (std::int64_t row = report.row.value_or(0); row < (report.row ? *report.row + 1 : p.seq); ++row) {
        const Row values = gather(b, h, row);
        const auto o = report.standard.outputs.o.matrix(b, h);
        std::vector<double> output(o.row(row), o.row(row) + o.columns);
        table.rows.push_back({fmt::format("{}", row), numbers(values.scores), numbers(values.masked),
                              numbers(values.probabilities), numbers(output)});
      }
      page.emplace_back(std::move(table));
    }
  }
  return page;
}

std::string error_text(double error) {
  return std::isfinite(error) ? three_digits(error) : std::isnan(error) ? "NaN" : "∞";
}

Document result_page(const ReplayReport& report) {
  const Problem& p = report.scenario.problem;
  Document page;
  page.emplace_back(Heading{fmt::format("Both against the truth (float64, compensated sums)")});
  const auto row_of = [&](const Tensor4<double>& o, std::int64_t b, std::int64_t h, std::int64_t row) {
    const auto matrix = o.matrix(b, h);
    NumberMatrix numbers{.rows = 1, .columns = matrix.columns};
    numbers.numbers.assign(matrix.row(row), matrix.row(row) + matrix.columns);
    return vector_text(numbers, 0);
  };
  TableBlock table{.heading = "Y", .columns = {"one-shot", "tiled", "truth"}, .left = {1, 2, 3}};
  constexpr std::int64_t kMostRows = 16;
  std::int64_t shown = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t row = report.row.value_or(0); row < (report.row ? *report.row + 1 : p.seq); ++row) {
        if (++shown > kMostRows) continue;
        const std::string where =
            p.batch * p.heads > 1 ? fmt::format("b {} h {} row {}", b, h, row) : fmt::format("row {}", row);
        table.rows.push_back({where, row_of(report.standard.outputs.o, b, h, row),
                              row_of(report.tiled.outputs.o, b, h, row),
                              row_of(report.truth.outputs.o, b, h, row)});
      }
    }
  }
  if (shown > kMostRows) table.rows.push_back({fmt::format("… ({} rows)", shown), "", "", ""});
  table.rows.push_back({"error of Y", error_text(report.standard.output_error.max_abs.size),
                        error_text(report.tiled.output_error.max_abs.size), ""});
  table.rows.push_back({"error of L", error_text(report.standard.lse_error.max_abs.size),
                        error_text(report.tiled.lse_error.max_abs.size), ""});
  page.emplace_back(std::move(table));

  const auto describe = [&](const Recording& recording, const char* name) {
    return fmt::format("{} {}", name, recording.agrees() ? "within rounding of the truth" : "WRONG");
  };
  const std::string text =
      fmt::format("{}, {}   (tolerance {} for Y, {} for L)", describe(report.standard, "one-shot"),
                  describe(report.tiled, "tiled"), three_digits(report.tolerance.output.value()),
                  three_digits(report.tolerance.lse.value()));
  page.emplace_back(VerdictLine{report.verdict == Verdict::right ? Tone::good : Tone::bad, text});
  if (report.verdict == Verdict::undecided) {
    page.emplace_back(LinesBlock{{fmt::format(
        "The tolerance is as large as the values of Y: scores of {} are too large for {} to decide.",
        three_digits(report.tolerance.magnitudes.score), name_of(report.compute))}});
  }
  if (!report.scenario.questions.empty())
    page.emplace_back(ListBlock{"Questions", report.scenario.questions});
  return page;
}

std::string about_text(const ReplayReport& report) {
  const Scenario& s = report.scenario;
  std::string text =
      fmt::format("{} · {} · tiles {} · {}", shape_text(s.problem),
                  s.problem.causal ? "causal" : "not causal", tiling_text(s.tiling), name_of(report.compute));
  if (!s.switches.subtract_max) text += " · maximum NOT subtracted";
  if (!s.switches.rescale) text += " · NOT rescaled";
  return text;
}

}  // namespace

std::vector<Document> replay_pages(const ReplayReport& report) {
  std::vector<Document> pages;
  Document first{Title{report.scenario.title, about_text(report)}};
  for (Block& block : standard_page(report)) first.push_back(std::move(block));
  pages.push_back(std::move(first));
  std::vector<Document> tiled = tiled_pages(report);
  if (!tiled.empty()) {
    tiled.front().insert(tiled.front().begin(),
                         Heading{fmt::format("The tiled way: {}", facts_of(report.tiled.algorithm).title)});
  }
  for (Document& page : tiled) pages.push_back(std::move(page));
  pages.push_back(result_page(report));
  return pages;
}

CsvTable replay_csv(const ReplayReport& report) {
  CsvTable table{.header = {"recording", "frame", "operation", "tensor", "batch", "head", "query_tile",
                            "key_tile", "value", "row", "column", "number"}};
  const auto add = [&](const std::string& recording, const std::vector<Frame>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Frame& frame = frames[i];
      const Step& step = frame.step;
      const bool moves = step.operation == Operation::load || step.operation == Operation::store;
      for (const auto& [name, matrix] : frame.values) {
        const bool of_keys = name == ChipValue::K || name == ChipValue::V;
        const bool by_key = name == ChipValue::S || name == ChipValue::P;
        for (std::int64_t r = 0; r < matrix.rows; ++r) {
          for (std::int64_t c = 0; c < matrix.columns; ++c) {
            table.rows.push_back(
                {recording, fmt::format("{}", i), std::string(name_of(step.operation)),
                 moves ? std::string(name_of(step.operand)) : "", fmt::format("{}", frame.batch),
                 fmt::format("{}", frame.head), tile_text(step.query_tile), tile_text(step.key_tile),
                 std::string(name_of(name)),
                 fmt::format("{}", (of_keys ? step.keys.begin : step.rows.begin) + r),
                 fmt::format("{}", (by_key ? step.keys.begin : 0) + c), exact_text(matrix.at(r, c))});
          }
        }
      }
    }
  };
  add("standard", report.standard.frames);
  add("tiled", report.tiled.frames);
  return table;
}

}  // namespace flashsim
