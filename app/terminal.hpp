// What the process is connected to: terminals, colour, progress, keys.
#pragma once

#include <cstdio>
#include <string>

namespace flashsim {

/// Colour on standard output: it is a terminal, NO_COLOR isn't set and TERM isn't "dumb".
bool colour_wanted();

bool is_terminal(std::FILE* stream);

/// The columns of the terminal that standard output is; 0 where it is none.
std::size_t terminal_width();

/// A line on standard error that shows how far a long piece of work is; nothing where that isn't a
/// terminal, and nothing in the first half second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(double done);

 private:
  std::string what_;
  bool enabled_;
  bool shown_ = false;
  double started_;
  double last_ = 0;
};

/// Waits for a key (a line where standard input is no terminal). False at q, Escape,
/// an interrupt or the end of input.
bool wait_for_key();

}  // namespace flashsim
