// Every command that README and docs print is run, and what it prints is compared.
//
// A block fenced as ```console holds commands behind "$ " and, under each, its output. `flashsim` is the
// built binary and `./dev run` is the same. A line of nothing but "…" stands for any lines. With
// FLASHSIM_UPDATE_DOCS=1 the outputs are written into the documents instead of compared; then read the
// difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;
using flashsim::test::read_whole;

const std::string kPrompt = "$ ";
const std::string kAnyLines = "…";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> documents() {
  const fs::path root = FLASHSIM_SOURCE_DIR;
  std::vector<fs::path> found;
  for (const fs::path& folder : {root, root / "docs"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Whether `shown` is `actual`, with "…" standing for any lines.
bool matches(const std::vector<std::string>& shown, const std::vector<std::string>& actual, std::size_t s = 0,
             std::size_t a = 0) {
  while (s < shown.size() && shown[s] != kAnyLines) {
    if (a >= actual.size() || shown[s] != actual[a]) return false;
    ++s;
    ++a;
  }
  if (s == shown.size()) return a == actual.size();
  for (std::size_t skip = a; skip <= actual.size(); ++skip) {
    if (matches(shown, actual, s + 1, skip)) return true;
  }
  return false;
}

std::vector<std::string> output_of(std::string command, const fs::path& folder) {
  const std::string front_door = "./dev run";
  if (command.starts_with(front_door)) command = "flashsim" + command.substr(front_door.size());
  return lines_of(flashsim::test::run_shell("{ " + command + "\n} 2>&1", folder).out);
}

struct Checked {
  int commands = 0;
  std::vector<std::string> rewritten;
};

/// Runs the commands of one document, in order and in one folder of its own.
Checked check(const fs::path& document, bool update) {
  const flashsim::test::TemporaryFolder folder;
  const std::vector<std::string> lines = lines_of(read_whole(document));
  Checked checked;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    checked.rewritten.push_back(lines[i]);
    if (lines[i] == "```console")
      inside = true;
    else if (lines[i] == "```")
      inside = false;
    if (!inside || !lines[i].starts_with(kPrompt)) continue;
    const std::string command = lines[i].substr(kPrompt.size());
    std::vector<std::string> shown;
    while (i + 1 < lines.size() && lines[i + 1] != "```" && !lines[i + 1].starts_with(kPrompt))
      shown.push_back(lines[++i]);
    const std::vector<std::string> actual = output_of(command, folder.path());
    ++checked.commands;
    const bool same = matches(shown, actual);
    if (!update) {
      INFO(document.filename().string() << ": $ " << command);
      std::string joined;
      for (const std::string& line : actual) joined += line + "\n";
      INFO("it prints:\n" << joined);
      CHECK(same);
    }
    const auto& kept = same ? shown : actual;
    checked.rewritten.insert(checked.rewritten.end(), kept.begin(), kept.end());
  }
  return checked;
}

}  // namespace

TEST_CASE("what the documents print as commands is what the commands print") {
  const bool update = std::getenv("FLASHSIM_UPDATE_DOCS") != nullptr;
  int commands = 0;
  for (const fs::path& document : documents()) {
    const Checked checked = check(document, update);
    commands += checked.commands;
    if (!update || checked.commands == 0) continue;
    std::ofstream out(document, std::ios::binary);
    for (const std::string& line : checked.rewritten) out << line << '\n';
  }
  CHECK(commands >= 10);
}

TEST_CASE("a wrong or missing line in a document is seen") {
  const std::vector<std::string> actual{"a", "b", "c", "d"};
  CHECK(matches({"a", "b", "c", "d"}, actual));
  CHECK(matches({"a", "…", "d"}, actual));
  CHECK(matches({"…"}, actual));
  CHECK_FALSE(matches({"a", "b", "c"}, actual));
  CHECK_FALSE(matches({"a", "x", "c", "d"}, actual));
  CHECK_FALSE(matches({"a", "…", "e"}, actual));
  CHECK_FALSE(matches({}, actual));
}
