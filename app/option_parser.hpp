// Options, which are texts, into values.
#pragma once

#include <optional>
#include <string>

#include "core/base/parse.hpp"
#include "core/base/result.hpp"

namespace flashsim {

/// Parses options one after another and keeps the first error.
class OptionParser {
 public:
  template <class T, class Parse>
  void parse(const std::optional<std::string>& text, std::optional<T>& value, Parse parser) {
    if (!text || error_) return;
    Result<T> parsed = parser(*text);
    if (parsed) {
      value = *parsed;
    } else {
      error_ = parsed.error();
    }
  }
  void dimension(const char* name, const std::optional<std::string>& text,
                 std::optional<std::int64_t>& value) {
    parse(text, value, [&](const std::string& given) { return parse_dimension(name, given); });
  }
  void finite(const char* name, const std::optional<std::string>& text, std::optional<double>& value) {
    parse(text, value, [&](const std::string& given) { return parse_finite(name, given); });
  }
  void whole(const char* name, const std::optional<std::string>& text, std::int64_t least, std::int64_t most,
             std::optional<std::int64_t>& value) {
    parse(text, value, [&](const std::string& given) { return parse_whole(name, given, least, most); });
  }
  [[nodiscard]] const Outcome& error() const { return error_; }

 private:
  Outcome error_;
};

}  // namespace flashsim
