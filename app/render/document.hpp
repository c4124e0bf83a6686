// What a command says, apart from how it looks: a list of blocks that the terminal and Markdown
// renderers each set in their own way. Cells are text already; numbers were formatted by whoever knows
// their unit.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace flashsim {

/// The line on top: what this is, and the problem it is about.
struct Title {
  std::string name;
  std::string about;
};

/// A smaller heading.
struct Heading {
  std::string text;
};

/// Columns with a header; the first is set to the left, the others to the right unless `left` says so.
struct TableBlock {
  std::string heading;                         ///< stands over the first column
  std::vector<std::string> columns;            ///< the others
  std::vector<std::vector<std::string>> rows;  ///< each one cell longer than `columns`
  std::vector<std::string> total;              ///< under a rule; empty where there is none
  std::vector<std::size_t> left;               ///< columns set to the left, counted from 0 with the first
};

/// Short statements with a label, a value and what there is to say about it.
struct Fact {
  std::string label;
  std::string value;
  std::string note;
};
struct FactsBlock {
  std::string heading;
  std::vector<Fact> facts;
};

/// Amounts as bars of a length in proportion.
struct Bar {
  std::string label;
  std::string value;
  double length = 0;  ///< the longest of a block fills the width
  std::string note;
};
struct BarsBlock {
  std::vector<Bar> bars;
};

/// Lines set as they are.
struct LinesBlock {
  std::vector<std::string> lines;
};

/// A numbered list.
struct ListBlock {
  std::string heading;
  std::vector<std::string> items;
};

enum class Tone { good, neutral, bad };
/// One sentence that says how it went.
struct VerdictLine {
  Tone tone = Tone::good;
  std::string text;
};

using Block =
    std::variant<Title, Heading, TableBlock, FactsBlock, BarsBlock, LinesBlock, ListBlock, VerdictLine>;
using Document = std::vector<Block>;

}  // namespace flashsim
