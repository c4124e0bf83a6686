// Comma-separated values (RFC 4180): one header, one line a row, quotes where a cell needs them.
#pragma once

#include <string>
#include <vector>

namespace flashsim {

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

std::string render_csv(const CsvTable& table);

}  // namespace flashsim
