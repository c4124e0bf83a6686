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

/// A line on standard error that shows how far a long piece of work is, at which rate, and the time left;
/// nothing where that isn't a terminal, and nothing in the first half second. An interrupt takes the line
/// away before the process ends.
class ProgressLine {
 public:
  /// `what` is being done; of the whole there is `amount` of `unit`, if a rate is to be shown.
  explicit ProgressLine(std::string what, double amount = 0, std::string unit = "");
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// So much is done, from 0 to 1.
  void show(double done);
  /// Says what is being done, at once, where nobody can tell how far it is.
  void announce();

 private:
  void draw(const std::string& line);

  std::string what_;
  double amount_;
  std::string unit_;
  bool enabled_;
  bool shown_ = false;
  double started_;
  double last_ = 0;
};

/// Waits for a key (a line where standard input is no terminal). False at q, Escape,
/// an interrupt or the end of input.
bool wait_for_key();

}  // namespace flashsim
