#include "core/base/quantity_text.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "core/base/wide.hpp"

namespace flashsim {
namespace {

/// `number` / `unit` with three significant digits, halves up, in exact arithmetic; empty when it
/// rounds up to `limit` whole units, so that the next unit must be taken.
std::string scaled(std::int64_t number, Wide unit, int limit) {
  for (const int decimals : {2, 1, 0}) {
    const int power = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    const auto rounded = static_cast<std::int64_t>((Wide{2} * power * number + unit) / (2 * unit));
    if (decimals > 0 && rounded >= 1000) continue;
    if (decimals == 0 && rounded >= limit) return {};
    return decimals == 0 ? fmt::format("{}", rounded)
                         : fmt::format("{}.{:0{}}", rounded / power, rounded % power, decimals);
  }
  return {};
}

}  // namespace

std::string size_text(Bytes size) {
  static constexpr std::array<std::string_view, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size.value() < 1024) return fmt::format("{} B", size.value());
  Wide unit = 1024;
  for (const std::string_view name : kUnits) {
    if (size.value() < unit * 1024) {
      const std::string text = scaled(size.value(), unit, 1024);
      if (!text.empty()) return fmt::format("{} {}", text, name);
    }
    unit *= 1024;
  }
  return fmt::format("{} B", size.value());
}

std::string grouped(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  const std::size_t sign = number < 0 ? 1 : 0;
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > sign && (digits.size() - at) % 3 == 0) text += ' ';
    text += digits[at];
  }
  return text;
}

std::string three_digits(double number) {
  if (!std::isfinite(number)) return value_text(number);
  if (number == 0) return "0";
  const double size = std::fabs(number);
  if (size >= 1e6 || size < 1e-4) return fmt::format("{:.2e}", number);
  // The digits that %.2e shows decide the magnitude, so that 9.996 becomes 10.0.
  const double shown = std::fabs(std::stod(fmt::format("{:.2e}", number)));
  const int decimals = std::max(0, 2 - static_cast<int>(std::floor(std::log10(shown) + 1e-12)));
  return fmt::format("{:.{}f}", number, decimals);
}

std::string decimal_text(std::int64_t number) {
  static constexpr std::array<std::string_view, 6> kPrefixes{"k", "M", "G", "T", "P", "E"};
  if (number < 1000) return fmt::format("{}", number);
  Wide unit = 1000;
  for (const std::string_view prefix : kPrefixes) {
    if (number < unit * 1000) {
      const std::string text = scaled(number, unit, 1000);
      if (!text.empty()) return fmt::format("{} {}", text, prefix);
    }
    unit *= 1000;
  }
  return fmt::format("{}", number);
}

std::string flops_text(Flops flops) {
  return decimal_text(flops.value()) + (flops.value() < 1000 ? " FLOP" : "FLOP");
}

std::string seconds_text(Seconds time) {
  constexpr double kLargestThatRoundsBelow = 0.9995;  // of the next unit: 999.5 ms is 1.00 s
  for (const auto& [unit, name] : {std::pair{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}}) {
    if (time.value < unit * 1000 * kLargestThatRoundsBelow) {
      return fmt::format("{} {}", three_digits(time.value / unit), name);
    }
  }
  return three_digits(time.value) + " s";
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  return fmt::format("{}{:.6g}", value < 0 ? "−" : "", std::fabs(value));
}

std::string exact_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

}  // namespace flashsim
