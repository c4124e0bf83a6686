#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/study/report_json.hpp"

namespace flashsim {
namespace {

using nlohmann::ordered_json;

std::string plain(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void write(const ordered_json& value, std::size_t level, std::string& out) {
  const bool flat =
      std::none_of(value.begin(), value.end(), [](const auto& item) { return item.is_structured(); });
  if (!value.is_structured() || value.empty()) {
    out += plain(value);
    return;
  }
  if (value.is_array() && flat) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) out += (i > 0 ? ", " : "") + plain(value[i]);
    out += ']';
    return;
  }
  const std::string indent(2 * (level + 1), ' ');
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    out += (first ? "\n" : ",\n") + indent;
    if (value.is_object()) out += plain(ordered_json(key)) + ": ";
    write(item, level + 1, out);
    first = false;
  }
  out += "\n" + std::string(2 * level, ' ') + (value.is_array() ? ']' : '}');
}

}  // namespace

std::string json_text(const ordered_json& json) {
  std::string out;
  write(json, 0, out);
  return out + "\n";
}

}  // namespace flashsim
