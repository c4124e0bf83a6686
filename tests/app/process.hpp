// Runs the built flashsim as a user would and gives back what it said.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/wait.h>

#include "tests/temporary_folder.hpp"

namespace flashsim::test {

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Runs a shell command in `folder`, with the folder of the built binary first on PATH. Standard input is
/// empty unless the command says otherwise.
inline Ran run_shell(const std::string& command, const std::filesystem::path& folder) {
  const TemporaryFolder scratch;
  const std::string script = "cd '" + folder.string() +
                             "' && export PATH='" FLASHSIM_BINARY_DIR "':\"$PATH\" && { " + command +
                             "\n} </dev/null >'" + (scratch / "out") + "' 2>'" + (scratch / "err") + "'";
  const int raw = std::system(script.c_str());
  return {.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1,
          .out = read_whole(scratch / "out"),
          .err = read_whole(scratch / "err")};
}

/// Runs flashsim with these arguments, in a folder of its own.
inline Ran run_flashsim(const std::string& arguments) {
  const TemporaryFolder folder;
  return run_shell("flashsim " + arguments, folder.path());
}

}  // namespace flashsim::test
