#include "core/problem/library.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/embedded.hpp"
#include "core/base/file.hpp"
#include "core/base/nearest.hpp"

namespace flashsim {

std::vector<std::string> built_in_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.folder == folder) names.emplace_back(file.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

Result<NamedText> find_data(const std::string& what, const std::string& folder, const std::string& name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.folder == folder && file.name == name) return NamedText{name, std::string(file.text)};
  }
  if (!is_path(name)) return unknown_name(what, name, built_in_names(folder));
  auto text = read_file(name);
  if (!text) return text.error();
  return NamedText{fmt::format("'{}'", name), std::move(text).value()};
}

}  // namespace flashsim
