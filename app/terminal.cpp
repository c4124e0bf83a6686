#include "app/terminal.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kQuietSeconds = 0.5;
constexpr double kRedrawSeconds = 0.1;

constexpr const char* kClearLine = "\r\x1b[K";

/// Takes the line away, then lets the signal do what it would have done. The handler goes last: a second
/// signal may come to another thread meanwhile, and would end the program before the line is away.
void clear_line_and_end(int signal) {
  const ssize_t ignored = ::write(STDERR_FILENO, kClearLine, std::strlen(kClearLine));
  (void)ignored;
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // comes when this returns
}

void clear_line_on_interrupt(bool on) {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    struct sigaction wanted {};
    wanted.sa_handler = on ? clear_line_and_end : SIG_DFL;
    // Who ignores it, as nohup does, goes on ignoring it.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      ::sigaction(signal, &wanted, nullptr);
    }
  }
}

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

ProgressLine::ProgressLine(std::string what, double amount, std::string unit)
    : what_(std::move(what)),
      amount_(amount),
      unit_(std::move(unit)),
      enabled_(is_terminal(stderr)),
      started_(now_seconds()) {}

ProgressLine::~ProgressLine() {
  if (!shown_) return;
  std::fputs(kClearLine, stderr);
  clear_line_on_interrupt(false);
}

void ProgressLine::show(double done) {
  const double now = now_seconds();
  const double elapsed = now - started_;
  if (!enabled_ || elapsed < kQuietSeconds || now - last_ < kRedrawSeconds) return;
  last_ = now;
  const double left = done > 0 ? elapsed / done - elapsed : 0;
  const std::string rate =
      amount_ > 0 ? fmt::format("   {} {}", three_digits(done * amount_ / elapsed), unit_) : "";
  draw(fmt::format("{} {:3.0f} %{}   {:.0f} s left", what_, 100 * done, rate, left));
}

void ProgressLine::announce() {
  if (enabled_) draw(what_ + " …");
}

void ProgressLine::draw(const std::string& line) {
  if (!shown_) clear_line_on_interrupt(true);
  shown_ = true;
  std::fputs(fmt::format("\r{}\x1b[K", line).c_str(), stderr);
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
