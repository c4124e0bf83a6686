// The layers of the source tree, as rules about who may include whom.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flashsim::test {

/// Source files by their path from the project root: "core/base/count.hpp".
using SourceTree = std::map<std::string, std::string>;

/// Reads every C++ and CUDA source file of `folders` under `root`.
SourceTree read_sources(const std::string& root, const std::vector<std::string>& folders);

/// What a file includes, as it is written between the quotes or brackets.
std::vector<std::string> includes_of(std::string_view text);

/// One line for each include that breaks a rule:
/// - base ← problem ← schedule ← {attention, account, replay} ← study ← app: a module of core includes
///   itself and what stands to its left;
/// - the closed forms of core/account never reach core/schedule, directly or through others;
/// - cuda includes core/base, core/problem and itself; only app includes cuda, and nobody includes app;
/// - what is ours is included from the project root, in quotes, and is there.
std::vector<std::string> violations(const SourceTree& sources);

}  // namespace flashsim::test
