#include "app/terminal.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace flashsim {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kQuietSeconds = 0.5;
constexpr double kRedrawSeconds = 0.1;

/// Keys without Enter, echo or signals, for as long as it lives: an interrupt is a key as well, so that the
/// terminal is never left as it is here.
class RawKeys {
 public:
  RawKeys() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    changed_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  ~RawKeys() {
    if (changed_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawKeys(const RawKeys&) = delete;
  RawKeys& operator=(const RawKeys&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

}  // namespace

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

std::size_t terminal_width() {
  winsize size{};
  return is_terminal(stdout) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool colour_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term != nullptr && std::strcmp(term, "dumb") == 0;
  return is_terminal(stdout) && !refused && !dumb;
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), enabled_(is_terminal(stderr)), started_(now_seconds()) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(double done) {
  const double now = now_seconds();
  const double elapsed = now - started_;
  if (!enabled_ || elapsed < kQuietSeconds || now - last_ < kRedrawSeconds) return;
  last_ = now;
  shown_ = true;
  const double left = done > 0 ? elapsed / done - elapsed : 0;
  const std::string line = fmt::format("\r{} {:3.0f} %   {:.0f} s left\x1b[K", what_, 100 * done, left);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

bool wait_for_key() {
  if (!is_terminal(stdin)) {
    for (int c = 0; (c = std::getchar()) != '\n';) {
      if (c == EOF || c == 'q') return false;
    }
    return true;
  }
  const RawKeys keys;
  char key = 0;
  constexpr char kEscape = 27;
  constexpr char kInterrupt = 3;
  return ::read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != kEscape && key != kInterrupt;
}

}  // namespace flashsim
