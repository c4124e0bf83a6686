#include "app/views/tune_view.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/views/account_view.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// Lines of a Pareto front on the terminal; JSON and CSV have them all.
constexpr std::size_t kFrontLines = 10;

std::string name_of_order(const OrderTuning& order) { return std::string(facts_of(order.algorithm).name); }

/// The side of the tile that the outer loop runs over.
const char* outer_symbol(const OrderTuning& order) {
  return order.algorithm == Algorithm::flash1 ? "Bc" : "Br";
}
const char* inner_symbol(const OrderTuning& order) {
  return order.algorithm == Algorithm::flash1 ? "Br" : "Bc";
}
std::int64_t outer_of(const OrderTuning& order, Tiling t) {
  return order.algorithm == Algorithm::flash1 ? t.key_rows : t.query_rows;
}
std::int64_t inner_of(const OrderTuning& order, Tiling t) {
  return order.algorithm == Algorithm::flash1 ? t.query_rows : t.key_rows;
}

std::vector<std::string> tile_row(const std::string& name, const TileChoice& tile, const TuneReport& report) {
  return {name,
          tiling_text(tile.tiling),
          size_text(tile.footprint) + (tile.footprint <= report.sram ? "" : " (doesn't fit)"),
          size_text(tile.hbm),
          three_digits(100 * ratio(tile.hbm, report.standard)) + " %",
          three_digits(ratio(tile.hbm, report.compulsory)) + " ×"};
}

/// What the theory's figure is, in words.
std::string theory_text(const TheoryBound& bound) {
  return fmt::format("an order without its constant: {} for each head, M = {} elements {} d²",
                     bound.large ? "N·Nkv·d²/M" : "N·Nkv·d/√M", grouped(bound.elements),
                     bound.large ? "≥" : "<");
}

std::string bytes_text(double bytes) {
  constexpr double kLargestShown = 9.2e18;
  return bytes < kLargestShown ? size_text(Bytes(std::llround(bytes))) : fmt::format("{:.3g} B", bytes);
}

FactsBlock bounds(const TuneReport& r) {
  return {.heading = "Beside them",
          .facts = {{"standard", size_text(r.standard), "S and P go through HBM"},
                    {"compulsory", size_text(r.compulsory), "Q, K and V in once, O and L out once"},
                    {"lower bound", bytes_text(r.theory.bytes), theory_text(r.theory)}}};
}

/// Where an order begins to pay, to the byte.
FactsBlock payoff_facts(const TuneReport& r) {
  FactsBlock block{.heading = "Where it begins to pay: no more bytes than standard"};
  for (const OrderTuning& order : r.orders) {
    const Payoff& payoff = order.payoff;
    const auto& tile = payoff.smallest_tile;
    const std::string leading = fmt::format("{} {} to leading order in N, without a mask",
                                            outer_symbol(order), three_digits(payoff.leading_order_rows));
    block.facts.push_back(
        {name_of_order(order) + " tile",
         tile ? fmt::format("{} {}", outer_symbol(order), grouped(outer_of(order, tile->tiling))) : "none",
         tile ? fmt::format("with {} {}; {}", inner_symbol(order), inner_of(order, tile->tiling), leading)
              : fmt::format("up to {} {}; {}", outer_symbol(order), grouped(payoff.searched_rows), leading)});
    const auto& sram = payoff.smallest_sram;
    block.facts.push_back(
        {name_of_order(order) + " SRAM", sram ? grouped(sram->footprint.value()) + " B" : "none",
         sram
             ? fmt::format("holds a tile {}, which moves {}", tiling_text(sram->tiling), size_text(sram->hbm))
             : "no tile that was tried moves so little"});
  }
  return block;
}

TableBlock front_table(const OrderTuning& order, const TuneReport& report) {
  const std::size_t size = order.front.size();
  TableBlock table{.heading = fmt::format("{} front", name_of_order(order)),
                   .columns = {"footprint", "HBM traffic", "of standard", "of compulsory"}};
  const std::size_t lines = std::min(size, kFrontLines);
  for (std::size_t i = 0; i < lines; ++i) {
    // The first, the last, and between them evenly.
    const std::size_t at = lines == 1 ? 0 : i * (size - 1) / (lines - 1);
    std::vector<std::string> row = tile_row("", order.front[at], report);
    row.erase(row.begin());
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Document tune_document(const TuneReport& report) {
  Document document;
  document.emplace_back(Title{"The best tiles, forward",
                              fmt::format("{} · SRAM {} · multiples of {}", problem_text(report.problem),
                                          size_text(report.sram), report.multiple_of)});
  TableBlock tiles{.heading = "tiles",
                   .columns = {"Br×Bc", "footprint", "HBM traffic", "of standard", "of compulsory"}};
  std::size_t hidden = 0;
  for (const OrderTuning& order : report.orders) {
    const std::string name = name_of_order(order);
    tiles.rows.push_back(tile_row(name + ", best", order.best, report));
    tiles.rows.push_back(tile_row(name + ", the paper's rule", order.paper, report));
    tiles.rows.push_back(tile_row(name + ", as chosen", order.chosen, report));
    hidden += order.front.size() - std::min(order.front.size(), kFrontLines);
  }
  document.emplace_back(std::move(tiles));
  document.emplace_back(bounds(report));
  document.emplace_back(payoff_facts(report));
  document.emplace_back(Heading{"Fewest bytes for each footprint"});
  for (const OrderTuning& order : report.orders) document.emplace_back(front_table(order, report));
  const std::string tried = fmt::format("{} and {} tiles fit", grouped(report.orders[0].candidates),
                                        grouped(report.orders[1].candidates));
  document.emplace_back(VerdictLine{
      Tone::neutral, hidden == 0
                         ? tried + ", from the closed forms"
                         : fmt::format("{}, from the closed forms; {} more on the fronts: --format csv",
                                       tried, grouped(static_cast<std::int64_t>(hidden)))});
  return document;
}

CsvTable tune_csv(const TuneReport& report) {
  CsvTable table{
      .header = {"algorithm", "line", "tile_q", "tile_k", "footprint_bytes", "hbm_total_bytes", "fits"}};
  const auto bound = [&](const char* name, const std::string& bytes) {
    table.rows.push_back({"", name, "", "", "", bytes, ""});
  };
  bound("standard", fmt::format("{}", report.standard.value()));
  bound("compulsory", fmt::format("{}", report.compulsory.value()));
  bound("lower bound, order", exact_text(report.theory.bytes));
  for (const OrderTuning& order : report.orders) {
    const auto add = [&](const char* line, const TileChoice& tile) {
      table.rows.push_back({name_of_order(order), line, fmt::format("{}", tile.tiling.query_rows),
                            fmt::format("{}", tile.tiling.key_rows),
                            fmt::format("{}", tile.footprint.value()), fmt::format("{}", tile.hbm.value()),
                            tile.footprint <= report.sram ? "true" : "false"});
    };
    add("best", order.best);
    add("paper", order.paper);
    add("chosen", order.chosen);
    if (order.payoff.smallest_tile) add("smallest tile that pays", *order.payoff.smallest_tile);
    if (order.payoff.smallest_sram) add("smallest SRAM that pays", *order.payoff.smallest_sram);
    for (const TileChoice& tile : order.front) add("front", tile);
  }
  return table;
}

Plot tune_plot(const TuneReport& report) {
  Plot plot{
      .title = "HBM traffic with the best tile, over the size of SRAM",
      .about = fmt::format("{} · multiples of {}", problem_text(report.problem), report.multiple_of),
      .x = {.field = "sram_bytes",
            .title = "shared memory of a block",
            .unit = PlotUnit::bytes,
            .logarithmic = true},
      .y = {
          .field = "hbm_total_bytes", .title = "HBM traffic", .unit = PlotUnit::bytes, .logarithmic = true}};
  const auto line = [&](const std::string& name, bool dashed, auto bytes_at) {
    PlotSeries series{.name = name, .dashed = dashed};
    for (const TunedSize& size : report.curve) {
      series.points.push_back({static_cast<double>(size.sram.value()), bytes_at(size)});
    }
    plot.series.push_back(std::move(series));
  };
  for (std::size_t o = 0; o < report.orders.size(); ++o) {
    line(name_of_order(report.orders[o]) + ", best tile", false, [&](const TunedSize& size) {
      return size.best[o] ? std::optional(static_cast<double>(size.best[o]->value())) : std::nullopt;
    });
  }
  const auto constant = [](Bytes bytes) {
    return [bytes](const TunedSize&) { return std::optional(static_cast<double>(bytes.value())); };
  };
  line("standard", true, constant(report.standard));
  line("compulsory", true, constant(report.compulsory));
  line("lower bound (order)", true, [](const TunedSize& size) { return std::optional(size.theory.bytes); });
  return plot;
}

}  // namespace flashsim
