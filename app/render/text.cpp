#include "app/render/text.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

namespace flashsim {
namespace {

constexpr std::size_t kGap = 3;
constexpr double kBarWidth = 40;

class TextRenderer {
 public:
  TextRenderer(bool coloured, std::size_t width) : coloured_(coloured), width_(width) {}

  std::string render(const Document& document) {
    for (const Block& block : document) {
      if (!out_.empty()) out_ += '\n';
      std::visit([this](const auto& one) { set(one); }, block);
    }
    return out_;
  }

 private:
  [[nodiscard]] std::string styled(const std::string& text, const char* code) const {
    return coloured_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  [[nodiscard]] std::string bold(const std::string& text) const { return styled(text, "1"); }
  [[nodiscard]] std::string dim(const std::string& text) const { return styled(text, "2"); }

  /// `text` broken at blanks into lines that fit behind `indent` columns.
  [[nodiscard]] std::vector<std::string> broken(const std::string& text, std::size_t indent) const {
    constexpr std::size_t kLeast = 24;  // narrower than that nothing is gained
    if (width_ == 0 || width_ < indent + kLeast || indent + width_of(text) <= width_) return {text};
    std::vector<std::string> lines(1);
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::string& line = lines.back();
      if (!line.empty() && indent + width_of(line) + 1 + width_of(word) > width_) {
        lines.push_back(word);
      } else {
        line += (line.empty() ? "" : " ") + word;
      }
    }
    return lines;
  }

  void set(const Title& title) { out_ += bold(title.name) + "   " + title.about + "\n"; }
  void set(const Heading& heading) { out_ += bold(heading.text) + "\n"; }

  void set(const TableBlock& table) {
    std::vector<std::string> header{table.heading};
    header.insert(header.end(), table.columns.begin(), table.columns.end());
    std::vector<std::size_t> widths(header.size());
    const auto widen = [&](const std::vector<std::string>& cells, std::size_t indent) {
      for (std::size_t c = 0; c < cells.size(); ++c) {
        widths[c] = std::max(widths[c], width_of(cells[c]) + (c == 0 ? indent : 0));
      }
    };
    widen(header, 0);
    for (const auto& row : table.rows) widen(row, 2);
    widen(table.total, 2);

    const std::size_t last = header.size() - 1;
    const auto is_left = [&](std::size_t c) {
      return c == 0 || std::count(table.left.begin(), table.left.end(), c) > 0;
    };
    std::size_t indent = 0;
    for (std::size_t c = 0; c < last; ++c) indent += widths[c] + kGap;
    const auto line = [&](const std::vector<std::string>& cells, bool head) {
      std::string text;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string cell = (c == 0 && !head ? "  " : "") + cells[c];
        if (c > 0) text += std::string(kGap, ' ');
        if (c < last || last == 0 || !is_left(c)) {
          text += padded(cell, widths[c], !is_left(c));
          continue;
        }
        // A last column of text may be long: it is broken under itself.
        std::string before;
        for (const std::string& part : broken(cell, indent)) {
          text += before + part;
          before = "\n" + std::string(indent, ' ');
        }
      }
      text.erase(text.find_last_not_of(' ') + 1);
      return text + "\n";
    };
    out_ += head_line(line(header, true));
    for (const auto& row : table.rows) out_ += line(row, false);
    if (table.total.empty()) return;
    std::size_t total_width = kGap * (widths.size() - 1);
    for (const std::size_t width : widths) total_width += width;
    std::string rule;
    for (std::size_t i = 2; i < total_width; ++i) rule += "─";
    out_ += "  " + dim(rule) + "\n" + line(table.total, false);
  }

  /// The header with its heading bold, and nothing of its line break styled.
  [[nodiscard]] std::string head_line(const std::string& line) const {
    return bold(line.substr(0, line.size() - 1)) + "\n";
  }

  void set(const FactsBlock& block) {
    if (!block.heading.empty()) out_ += bold(block.heading) + "\n";
    std::size_t label = 0;
    std::size_t value = 0;
    for (const Fact& fact : block.facts) {
      label = std::max(label, width_of(fact.label));
      value = std::max(value, width_of(fact.value));
    }
    const std::size_t indent = 2 + label + kGap + value + kGap;
    for (const Fact& fact : block.facts) {
      out_ += "  " + padded(fact.label, label, false) + std::string(kGap, ' ');
      if (fact.note.empty()) {
        out_ += fact.value + "\n";
        continue;
      }
      // Without a value the note stands in its place.
      const std::size_t behind = fact.value.empty() ? 2 + label + kGap : indent;
      std::string before =
          fact.value.empty() ? "" : padded(fact.value, value, false) + std::string(kGap, ' ');
      for (const std::string& line : broken(fact.note, behind)) {
        out_ += before + dim(line) + "\n";
        before = std::string(behind, ' ');
      }
    }
  }

  void set(const BarsBlock& block) {
    std::size_t label = 0;
    std::size_t value = 0;
    double longest = 0;
    for (const Bar& bar : block.bars) {
      label = std::max(label, width_of(bar.label));
      value = std::max(value, width_of(bar.value));
      longest = std::max(longest, bar.length);
    }
    for (const Bar& bar : block.bars) {
      const auto blocks = static_cast<int>(std::lround(kBarWidth * bar.length / std::max(longest, 1e-300)));
      std::string drawn;
      for (int i = 0; i < std::max(blocks, 1); ++i) drawn += "█";
      out_ += padded(bar.label, label, false) + std::string(kGap, ' ') + padded(bar.value, value, true) +
              std::string(kGap, ' ') + drawn + (bar.note.empty() ? "" : "   " + bold(bar.note)) + "\n";
    }
  }

  void set(const LinesBlock& block) {
    for (const std::string& line : block.lines) out_ += line + "\n";
  }

  void set(const ListBlock& block) {
    out_ += bold(block.heading) + "\n";
    for (std::size_t i = 0; i < block.items.size(); ++i)
      out_ += fmt::format("  {}. {}\n", i + 1, block.items[i]);
  }

  void set(const VerdictLine& verdict) {
    const char* colour = verdict.tone == Tone::good ? "32" : verdict.tone == Tone::bad ? "31" : "0";
    out_ += styled(verdict.text, colour) + "\n";
  }

  bool coloured_;
  std::size_t width_;
  std::string out_;
};

}  // namespace

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t own = width_of(text);
  const std::string blanks(width > own ? width - own : 0, ' ');
  return right ? blanks + text : text + blanks;
}

std::string render_text(const Document& document, bool coloured, std::size_t width) {
  return TextRenderer(coloured, width).render(document);
}

}  // namespace flashsim
