#include "app/views/calibrate_view.hpp"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

std::string rate_text(const MachineRate& rate, const std::optional<double>& value) {
  if (!value) return "–";
  if (rate.unit == "s") return seconds_text({*value});
  if (rate.unit.empty()) return three_digits(*value);
  return decimal_text(static_cast<std::int64_t>(*value)) + rate.unit;
}

}  // namespace

Document calibrate_document(const CalibrateReport& r) {
  Document document;
  document.emplace_back(Title{
      fmt::format("Rates of {}", r.device.name),
      fmt::format("driver {} · CUDA {} · {} SMs · {}", r.device.driver.empty() ? "unknown" : r.device.driver,
                  r.device.runtime, r.machine.sms, size_text(r.machine.memory))});
  TableBlock table{.heading = "Rate",
                   .columns = {"measured", r.datasheet ? r.datasheet->title : "datasheet", "ratio", ""},
                   .left = {4}};
  for (const MachineRate& rate : rates_of(r)) {
    const auto ratio = rate.ratio();
    table.rows.push_back({rate.key, rate_text(rate, rate.measured), rate_text(rate, rate.datasheet),
                          ratio ? three_digits(*ratio) : "", rate.is_measured ? "" : "taken over"});
  }
  document.emplace_back(std::move(table));
  LinesBlock lines;
  if (!r.datasheet) {
    lines.lines.emplace_back("No machine file fits this GPU, so nothing stands beside its rates.");
  }
  if (!r.machine.notes.empty()) lines.lines.push_back(r.machine.notes);
  lines.lines.emplace_back("calibrate --out FILE writes the machine file, and --gpu FILE takes it.");
  document.emplace_back(std::move(lines));
  return document;
}

CsvTable calibrate_csv(const CalibrateReport& r) {
  CsvTable table{.header = {"rate", "unit", "measured", "datasheet", "ratio", "is_measured"}};
  const auto text = [](const std::optional<double>& value) {
    return value ? exact_text(*value) : std::string();
  };
  for (const MachineRate& rate : rates_of(r)) {
    table.rows.push_back({rate.key, rate.unit, text(rate.measured), text(rate.datasheet), text(rate.ratio()),
                          rate.is_measured ? "true" : "false"});
  }
  return table;
}

}  // namespace flashsim
