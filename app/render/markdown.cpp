#include "app/render/markdown.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// A cell: what Markdown would read as a column's end is escaped.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

class MarkdownRenderer {
 public:
  std::string render(const Document& document) {
    for (const Block& block : document) {
      if (!out_.empty()) out_ += '\n';
      std::visit([this](const auto& one) { set(one); }, block);
    }
    return out_;
  }

 private:
  void row(const std::vector<std::string>& cells) {
    out_ += "|";
    for (const std::string& text : cells) out_ += " " + cell(text) + " |";
    out_ += "\n";
  }

  void set(const Title& title) { out_ += fmt::format("## {}\n\n{}\n", title.name, title.about); }
  void set(const Heading& heading) { out_ += fmt::format("### {}\n", heading.text); }

  void set(const TableBlock& table) {
    std::vector<std::string> header{table.heading};
    header.insert(header.end(), table.columns.begin(), table.columns.end());
    row(header);
    out_ += "|";
    for (std::size_t c = 0; c < header.size(); ++c) {
      const bool left = c == 0 || std::count(table.left.begin(), table.left.end(), c) > 0;
      out_ += left ? " :-- |" : " --: |";
    }
    out_ += "\n";
    for (const auto& cells : table.rows) row(cells);
    if (table.total.empty()) return;
    std::vector<std::string> total;
    for (const std::string& text : table.total) total.push_back(text.empty() ? "" : "**" + text + "**");
    row(total);
  }

  void set(const FactsBlock& block) {
    if (!block.heading.empty()) out_ += fmt::format("**{}**\n\n", block.heading);
    for (const Fact& fact : block.facts) {
      const bool both = !fact.value.empty() && !fact.note.empty();
      out_ += fmt::format("- {}: {}{}{}\n", fact.label, fact.value, both ? " — " : "", fact.note);
    }
  }

  void set(const BarsBlock& block) {
    for (const Bar& bar : block.bars) {
      out_ += fmt::format("- {}: {}{}\n", bar.label, bar.value, bar.note.empty() ? "" : " — " + bar.note);
    }
  }

  void set(const LinesBlock& block) {
    out_ += "```text\n";
    for (const std::string& line : block.lines) out_ += line + "\n";
    out_ += "```\n";
  }

  void set(const ListBlock& block) {
    out_ += fmt::format("**{}**\n\n", block.heading);
    for (std::size_t i = 0; i < block.items.size(); ++i)
      out_ += fmt::format("{}. {}\n", i + 1, block.items[i]);
  }

  void set(const VerdictLine& verdict) { out_ += verdict.text + "\n"; }

  std::string out_;
};

}  // namespace

std::string render_markdown(const Document& document) { return MarkdownRenderer().render(document); }

}  // namespace flashsim
