#include "cuda/driver_version.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace flashsim {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_version(std::string_view word) {
  return !word.empty() && is_digit(word.front()) && is_digit(word.back()) &&
         word.find('.') != std::string_view::npos &&
         std::ranges::all_of(word, [](char c) { return is_digit(c) || c == '.'; });
}

}  // namespace

std::string driver_version_in(std::string_view text) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (is_version(word)) return word;
  }
  return "";
}

std::string driver_version_of_module() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return driver_version_in(line);
}

}  // namespace flashsim
