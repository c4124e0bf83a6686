#include "app/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/render/markdown.hpp"
#include "app/render/text.hpp"
#include "app/terminal.hpp"
#include "core/base/file.hpp"
#include "core/base/nearest.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

std::string rendered(const OutputOptions& options, const Forms& forms) {
  if (options.format == "json") return json_text(forms.json());
  if (options.format == "csv") return render_csv(forms.csv());
  if (options.format == "markdown") return render_markdown(forms.document());
  return render_text(forms.document(), !options.file && colour_wanted(), options.file ? 0 : terminal_width());
}

/// Text on one line: what a message quotes may hold line breaks or control characters, or be very long.
std::string one_line(const std::string& text) {
  constexpr std::size_t kLongest = 600;
  std::string line;
  for (const char c : text.size() <= kLongest ? text : text.substr(0, kLongest) + "...") {
    const auto code = static_cast<unsigned char>(c);
    line += code < 0x20 || code == 0x7F ? fmt::format("\\x{:02x}", code) : std::string(1, c);
  }
  return line;
}

}  // namespace

Outcome check_format(const std::string& format) {
  for (const char* known : {"table", "json", "csv", "markdown"}) {
    if (format == known) return std::nullopt;
  }
  return unknown_name("format", format, {"table", "json", "csv", "markdown"});
}

Outcome emit(const OutputOptions& options, const Forms& forms) {
  const std::string text = rendered(options, forms);
  if (options.file) return write_file(*options.file, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return Error{fmt::format("can't write to standard output: {}", std::strerror(errno)), ""};
  }
  return std::nullopt;
}

void print_error(const Error& error) {
  // Standard error may be closed: then there is nobody to tell, and the status says it.
  std::string text = "error: " + one_line(error.message) + "\n";
  if (!error.hint.empty()) text += "hint: " + one_line(error.hint) + "\n";
  std::fputs(text.c_str(), stderr);
}

}  // namespace flashsim
