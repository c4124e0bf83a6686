// Bad input as a user meets it: one clear line, status 2, nothing on standard output, no file left behind.
#pragma once

#include <algorithm>
#include <string>

#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace flashsim::test {

/// What `arguments` say on standard error, after checking that nothing else happened.
inline std::string refusal(const std::string& arguments, const TemporaryFolder& folder) {
  const auto before = folder.names();
  const Ran ran = run_shell("flashsim " + arguments, folder.path());
  INFO(arguments);
  CHECK(ran.status == 2);
  CHECK(ran.out.empty());
  CHECK(folder.names() == before);
  const auto lines = std::count(ran.err.begin(), ran.err.end(), '\n');
  CHECK(ran.err.starts_with("error: "));
  CHECK((lines == 1 || (lines == 2 && ran.err.find("\nhint: ") != std::string::npos)));
  return ran.err;
}

inline std::string refusal(const std::string& arguments) { return refusal(arguments, TemporaryFolder()); }

}  // namespace flashsim::test
