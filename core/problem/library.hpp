// Named data: a built-in machine, model or scenario, or a file of one's own in its place.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace flashsim {

struct NamedText {
  std::string source;  ///< what errors call it: the built-in name, or the path in quotes
  std::string text;
};

/// The built-in names of a folder ("machines", "models", "scenarios"), in order.
std::vector<std::string> built_in_names(const std::string& folder);

/// Whether a name is meant as a path: it has a '/' or ends in .json.
bool is_path(const std::string& name);

/// The text of a built-in name, or of a file where `name` is a path.
/// `what` is what the error calls it: "GPU". Errors: an unknown name, a file that can't be read.
Result<NamedText> find_data(const std::string& what, const std::string& folder, const std::string& name);

}  // namespace flashsim
