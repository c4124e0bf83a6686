#include "core/base/parse.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace flashsim {
namespace {

/// The whole of `text` as a number of type T.
template <class T>
std::optional<T> whole_text(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error not_a_whole_number(std::string_view name, std::string_view given, std::int64_t least,
                         std::int64_t most) {
  return {fmt::format("{} must be a whole number from {} to {}, not {}", name, least, most, given), ""};
}

}  // namespace

Result<std::int64_t> parse_whole(std::string_view name, std::string_view text, std::int64_t least,
                                 std::int64_t most) {
  const auto value = whole_text<std::int64_t>(text);
  if (!value || *value < least || *value > most) {
    return not_a_whole_number(name, fmt::format("'{}'", text), least, most);
  }
  return *value;
}

Result<std::int64_t> parse_dimension(std::string_view name, std::string_view text) {
  return parse_whole(name, text, 1, kLargestDimension);
}

Result<std::int64_t> check_dimension(std::string_view name, std::int64_t value) {
  if (value < 1 || value > kLargestDimension) {
    return not_a_whole_number(name, fmt::format("{}", value), 1, kLargestDimension);
  }
  return value;
}

Result<double> parse_finite(std::string_view name, std::string_view text) {
  const auto value = whole_text<double>(text);
  if (!value || !std::isfinite(*value)) {
    return Error{fmt::format("{} must be a finite number, not '{}'", name, text), ""};
  }
  return *value;
}

Result<Bytes> parse_size(std::string_view name, std::string_view text) {
  const Error wrong{fmt::format("{} must be a size such as 192KiB, not '{}'", name, text),
                    "write bytes as a plain number, or with KiB, MiB or GiB: 65536, 192KiB, 1.5MiB"};
  std::string_view number = text;
  double unit = 1;
  for (const auto& [suffix, scale] : {std::pair<std::string_view, double>{"KiB", 1024.0},
                                      {"MiB", 1048576.0},
                                      {"GiB", 1073741824.0},
                                      {"B", 1.0}}) {
    if (number.ends_with(suffix)) {
      number.remove_suffix(suffix.size());
      unit = scale;
      break;
    }
  }
  while (number.ends_with(' ')) number.remove_suffix(1);
  if (unit == 1) {
    const auto bytes = whole_text<std::int64_t>(number);
    if (!bytes || *bytes < 1 || Bytes(*bytes).overflowed()) return wrong;
    return Bytes(*bytes);
  }
  const auto value = whole_text<double>(number);
  if (!value || !std::isfinite(*value)) return wrong;
  const double bytes = *value * unit;
  if (bytes < 1 || bytes >= 9.2e18 || bytes != std::floor(bytes)) return wrong;
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace flashsim
