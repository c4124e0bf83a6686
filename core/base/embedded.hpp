// The data files that the build puts into the binary: machines, models, scenarios.
#pragma once

#include <span>
#include <string_view>

namespace flashsim {

struct EmbeddedFile {
  std::string_view folder;  ///< "machines", "models" or "scenarios"
  std::string_view name;    ///< the file's name without .json
  std::string_view text;
};

/// Every embedded file, by folder and name. The build writes the definition.
std::span<const EmbeddedFile> embedded_files();

}  // namespace flashsim
