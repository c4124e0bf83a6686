#include "tests/layers/include_rules.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace flashsim::test {
namespace {

/// The modules of core by layer, lowest first. Modules of one layer don't see each other.
const std::vector<std::vector<std::string>> kLayers{
    {"base"}, {"problem"}, {"schedule"}, {"attention", "account", "replay"}, {"study"}};

constexpr std::array kTops{"core", "cuda", "app"};

std::string first_folder(std::string_view path) {
  const std::size_t slash = path.find('/');
  return std::string(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
}

/// "account" of "core/account/ledger.hpp"; empty outside core, and for a file of no module.
std::string module_of(std::string_view path) {
  return first_folder(path) == "core" ? first_folder(path.substr(5)) : std::string();
}

std::optional<std::size_t> layer_of(const std::string& module) {
  for (std::size_t layer = 0; layer < kLayers.size(); ++layer) {
    if (std::count(kLayers[layer].begin(), kLayers[layer].end(), module) > 0) return layer;
  }
  return std::nullopt;
}

bool is_ours(const std::string& path) {
  return std::any_of(kTops.begin(), kTops.end(), [&](const char* top) { return first_folder(path) == top; });
}

bool is_closed_form(std::string_view path) { return path.starts_with("core/account/closed_form/"); }

/// `from` may include `to` as far as the layers go.
bool may_include(const std::string& from, const std::string& to) {
  const std::string top = first_folder(from);
  const std::string target = first_folder(to);
  if (top == "app") return true;
  if (target == "app") return false;
  if (top == "cuda") return target == "cuda" || module_of(to) == "base" || module_of(to) == "problem";
  if (target == "cuda") return false;
  const auto own = layer_of(module_of(from));
  const auto other = layer_of(module_of(to));
  return own && other && (module_of(from) == module_of(to) || *other < *own);
}

/// Every file of ours that `path` includes, directly or through others, with the one that leads to it.
std::map<std::string, std::string> reached_from(const std::string& path, const SourceTree& sources) {
  std::map<std::string, std::string> reached;
  std::vector<std::string> open{path};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    const auto file = sources.find(at);
    if (file == sources.end()) continue;
    for (const std::string& include : includes_of(file->second)) {
      if (is_ours(include) && reached.emplace(include, at).second) open.push_back(include);
    }
  }
  return reached;
}

/// The text of a line that includes something.
struct IncludeLine {
  std::string path;
  bool quoted = false;
};

std::vector<IncludeLine> include_lines(std::string_view text) {
  static const std::regex kInclude(R"(^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"])");
  std::vector<IncludeLine> found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) found.push_back({match[2], match[1] == "\""});
  }
  return found;
}

}  // namespace

SourceTree read_sources(const std::string& root, const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  static const std::set<std::string> kEndings{".hpp", ".cpp", ".h", ".cc", ".cu", ".cuh", ".inc"};
  SourceTree sources;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
      if (!entry.is_regular_file() || !kEndings.contains(entry.path().extension().string())) continue;
      std::ifstream file(entry.path());
      std::ostringstream text;
      text << file.rdbuf();
      sources[fs::relative(entry.path(), root).generic_string()] = text.str();
    }
  }
  return sources;
}

std::vector<std::string> includes_of(std::string_view text) {
  std::vector<std::string> paths;
  for (const IncludeLine& line : include_lines(text)) paths.push_back(line.path);
  return paths;
}

std::vector<std::string> violations(const SourceTree& sources) {
  std::vector<std::string> found;
  for (const auto& [path, text] : sources) {
    if (first_folder(path) == "core" && !layer_of(module_of(path))) {
      found.push_back(fmt::format("{} belongs to no module that the layers know", path));
    }
    for (const IncludeLine& line : include_lines(text)) {
      if (!is_ours(line.path)) {
        if (line.quoted)
          found.push_back(fmt::format("{} includes \"{}\", not from the project root", path, line.path));
        continue;
      }
      if (!line.quoted) found.push_back(fmt::format("{} includes <{}>, not in quotes", path, line.path));
      if (!sources.contains(line.path))
        found.push_back(fmt::format("{} includes {}, which isn't there", path, line.path));
      if (!may_include(path, line.path)) found.push_back(fmt::format("{} includes {}", path, line.path));
    }
    if (!is_closed_form(path)) continue;
    for (const auto& [reached, through] : reached_from(path, sources)) {
      if (module_of(reached) == "schedule") {
        found.push_back(fmt::format("{} reaches {} through {}", path, reached, through));
      }
    }
  }
  return found;
}

}  // namespace flashsim::test
