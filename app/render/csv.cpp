#include "app/render/csv.hpp"

namespace flashsim {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

void write(const std::vector<std::string>& cells, std::string& out) {
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? "," : "") + quoted(cells[i]);
  out += '\n';
}

}  // namespace

std::string render_csv(const CsvTable& table) {
  std::string out;
  write(table.header, out);
  for (const auto& row : table.rows) write(row, out);
  return out;
}

}  // namespace flashsim
